// One run of ns-3.44 over a Wi-Fi cell: an access point sends to a station, datagrams or TCP, beside stations that send
// datagrams up. Prints a row of CSV; see README.md.
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--header") {
    std::cout << "label,ns3,standard,mode,width_mhz,ampdu_packets,cc,stations,buffer_pkts,rtt_prop_ms,T_s,warm_s,seed,"
                 "goodput_w_mbps,goodput_up_w_mbps\n";
    return 0;
  }
  std::string standard = "802.11n", mode = "HtMcs7", control = "OfdmRate24Mbps", cc = "udp", label;
  uint32_t width = 20, packets = 64, bytes = 1472, stations = 0, seed = 1, buffer = 300;
  double T = 10, warm = 2, rtt = 20, load = 1000;
  CommandLine cmd;
  cmd.AddValue("label", "name of the cell", label);
  cmd.AddValue("standard", "802.11a, 802.11n, 802.11ac or 802.11ax", standard);
  cmd.AddValue("mode", "mode of data", mode);
  cmd.AddValue("width", "MHz", width);
  cmd.AddValue("packets", "most packets in an aggregate, by its bytes", packets);
  cmd.AddValue("cc", "udp, Cubic or LinuxReno", cc);
  cmd.AddValue("stations", "stations that send datagrams up", stations);
  cmd.AddValue("buffer", "packets in the access point's queue", buffer);
  cmd.AddValue("rtt", "ms between the sender and the access point, there and back", rtt);
  cmd.AddValue("load", "Mbit/s of datagrams", load);
  cmd.AddValue("T", "s", T);
  cmd.AddValue("warm", "s left out", warm);
  cmd.AddValue("seed", "", seed);
  cmd.Parse(argc, argv);
  RngSeedManager::SetSeed(seed);

  // So many packets of 1500 bytes (IP) in an aggregate: 1538 bytes with MAC, LLC and FCS, 1544 with delimiter and padding.
  const uint32_t most = packets > 1 ? packets * 1544 : 0;
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 23));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 23));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(std::to_string(buffer) + "p")));
  Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100)));
  Config::SetDefault("ns3::HeConfiguration::GuardInterval", TimeValue(NanoSeconds(800)));
  if (cc != "udp") Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::Tcp" + cc));

  NodeContainer server, ap, sta;
  server.Create(1), ap.Create(1), sta.Create(1 + stations);
  PointToPointHelper wire;
  wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
  wire.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(rtt * 500))));
  const NetDeviceContainer ends = wire.Install(server.Get(0), ap.Get(0));

  WifiHelper wifi;
  wifi.SetStandard(standard == "802.11a"    ? WIFI_STANDARD_80211a
                   : standard == "802.11n"  ? WIFI_STANDARD_80211n
                   : standard == "802.11ac" ? WIFI_STANDARD_80211ac
                                            : WIFI_STANDARD_80211ax);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(mode), "ControlMode",
                               StringValue(control), "RtsCtsThreshold", UintegerValue(4692480));
  YansWifiChannelHelper channel;
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(-30));
  YansWifiPhyHelper phy;
  phy.SetChannel(channel.Create());
  phy.DisablePreambleDetectionModel();
  phy.Set("ChannelSettings", StringValue("{0, " + std::to_string(width) + ", BAND_5GHZ, 0}"));
  WifiMacHelper mac;
  const Ssid ssid("cell");
  mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(most), "QosSupported",
              BooleanValue(true));
  NetDeviceContainer stas = wifi.Install(phy, mac, sta);
  mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(most), "QosSupported",
              BooleanValue(true), "EnableBeaconJitter", BooleanValue(false), "BeaconInterval",
              TimeValue(MicroSeconds(1024 * 10000)));
  NetDeviceContainer aps = wifi.Install(phy, mac, ap);

  MobilityHelper mobility;
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(ap);
  mobility.Install(sta);
  InternetStackHelper internet;
  internet.InstallAll();
  Ipv4AddressHelper address;
  address.SetBase("10.1.0.0", "255.255.255.0");
  address.Assign(ends);
  address.SetBase("10.2.0.0", "255.255.0.0");
  const Ipv4InterfaceContainer at_sta = address.Assign(stas);
  const Ipv4InterfaceContainer at_ap = address.Assign(aps);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  NeighborCacheHelper neighbours;
  neighbours.PopulateNeighborCache();

  const std::string transport = cc == "udp" ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
  PacketSinkHelper sink(transport, InetSocketAddress(Ipv4Address::GetAny(), 9));
  auto sinks = sink.Install(sta.Get(0));
  const InetSocketAddress to(at_sta.GetAddress(0), 9);
  ApplicationContainer sources;
  if (cc == "udp") {
    OnOffHelper source(transport, to);
    source.SetConstantRate(DataRate(static_cast<uint64_t>(load * 1e6)), bytes);
    sources = source.Install(ap.Get(0));
  } else {
    BulkSendHelper source(transport, to);
    source.SetAttribute("MaxBytes", UintegerValue(0));
    source.SetAttribute("SendSize", UintegerValue(1448));
    sources = source.Install(server.Get(0));
  }
  sources.Start(Seconds(1));
  PacketSinkHelper sink_up("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 10));
  auto sinks_up = sink_up.Install(ap.Get(0));
  for (uint32_t i = 1; i <= stations; ++i) {
    OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(at_ap.GetAddress(0), 10));
    source.SetConstantRate(DataRate(static_cast<uint64_t>(load * 1e6)), bytes);
    auto up = source.Install(sta.Get(i));
    up.Start(Seconds(1 + 0.001 * i));
  }
  uint64_t before = 0, before_up = 0;
  const auto received = [](const ApplicationContainer& apps) { return DynamicCast<PacketSink>(apps.Get(0))->GetTotalRx(); };
  Simulator::Schedule(Seconds(1 + warm), [&] { before = received(sinks), before_up = received(sinks_up); });
  Simulator::Stop(Seconds(1 + T));
  Simulator::Run();
  const auto mbps = [&](uint64_t bytes_) { return static_cast<double>(bytes_) * 8e-6 / (T - warm); };
  std::cout << label << ",3.44," << standard << ',' << mode << ',' << width << ',' << packets << ',' << cc << ',' << stations
            << ',' << buffer << ',' << rtt << ',' << T << ',' << warm << ',' << seed << ',' << mbps(received(sinks) - before)
            << ',' << mbps(received(sinks_up) - before_up) << '\n';
  Simulator::Destroy();
}
