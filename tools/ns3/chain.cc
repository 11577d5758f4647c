// One run of ns-3 over a chain of links: long flows over all of them, others over one each. Prints the header of its
// CSV row with --header=1, its row without. README.md says how it is built, chain.py what is run.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cmath>
#include <cstdio>
#include <sstream>

using namespace ns3;

constexpr uint32_t kUnlimited = 1'000'000;

Ipv4AddressHelper g_addresses;

std::vector<double> Numbers(const std::string& text, char separator) {
  std::vector<double> numbers;
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, separator);) numbers.push_back(std::stod(one));
  return numbers;
}

DataRate Rate(double mbps) { return DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6))); }

NetDeviceContainer Join(Ptr<Node> a, Ptr<Node> b, double mbps, Time delay, uint32_t packets, Ipv4Address* address) {
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", DataRateValue(Rate(mbps)));
  link.SetChannelAttribute("Delay", TimeValue(delay));
  link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, kUnlimited)));
  link.DisableFlowControl();
  const NetDeviceContainer devices = link.Install(a, b);
  DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue()->SetMaxSize(
      QueueSize(QueueSizeUnit::PACKETS, packets));
  g_addresses.NewNetwork();
  *address = g_addresses.Assign(devices).GetAddress(1);
  return devices;
}

int main(int argc, char* argv[]) {
  std::string label = "chain", cc = "Cubic", rates = "10;10;10", steps;
  uint32_t flows = 1, cross = 1, buffer = 40, header = 0, mss = 1448;
  double rtt = 60, access_ms = 1, access = 1000, end_s = 20, warm_s = 5, stagger = 0;
  CommandLine cmd(__FILE__);
  cmd.AddValue("header", "print the names of the columns only", header);
  cmd.AddValue("label", "of the cell's kind", label);
  cmd.AddValue("cc", "congestion control: a class of ns-3's without its Tcp", cc);
  cmd.AddValue("flows", "over the whole chain", flows);
  cmd.AddValue("cross", "over each link alone", cross);
  cmd.AddValue("rates", "of the links, Mbit/s, by ;", rates);
  cmd.AddValue("steps", "s:Mbit/s;s:Mbit/s: the first link's rate from then on", steps);
  cmd.AddValue("rtt", "propagation there and back over the whole chain, access links included, ms", rtt);
  cmd.AddValue("accessMs", "propagation of a host's link, ms; 0: hosts are the routers themselves", access_ms);
  cmd.AddValue("access", "rate of a host's link, Mbit/s", access);
  cmd.AddValue("buffer", "of each link, packets", buffer);
  cmd.AddValue("T", "duration, s", end_s);
  cmd.AddValue("warm", "start of the measured window, s", warm_s);
  cmd.AddValue("stagger", "from one start to the next, s", stagger);
  cmd.Parse(argc, argv);
  if (header) {
    std::puts("label,cc,flows,cross,rates_mbps,rate_steps,rtt_prop_ms,access_ms,access_mbps,buffer_pkts,T_s,warm_s,"
              "stagger_s,goodput_w_mbps,queue_drops");
    return 0;
  }
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::Tcp" + cc));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(1);
  g_addresses.SetBase("10.0.0.0", "255.255.255.0");

  const std::vector<double> speeds = Numbers(rates, ';');
  NodeContainer routers;
  routers.Create(static_cast<uint32_t>(speeds.size() + 1));
  InternetStackHelper().Install(routers);
  const double each_ms = (rtt / 2 - 2 * access_ms) / static_cast<double>(speeds.size());
  const Time delay = NanoSeconds(std::llround(each_ms * 1e6));
  std::vector<uint64_t> drops(speeds.size());
  std::vector<Ptr<PointToPointNetDevice>> hops;
  std::vector<Ipv4Address> far(speeds.size());
  for (uint32_t i = 0; i < speeds.size(); ++i) {
    const auto devices = Join(routers.Get(i), routers.Get(i + 1), speeds[i], delay, buffer, &far[i]);
    hops.push_back(DynamicCast<PointToPointNetDevice>(devices.Get(0)));
    hops[i]->GetQueue()->TraceConnectWithoutContext(
        "Drop", Callback<void, Ptr<const Packet>>([&drops, i](Ptr<const Packet>) { ++drops[i]; }));
  }
  std::istringstream list(steps);
  for (std::string step; std::getline(list, step, ';');) {
    const size_t colon = step.find(':');
    const double mbps = std::stod(step.substr(colon + 1)), at = std::stod(step.substr(0, colon));
    if (at == 0) hops[0]->SetDataRate(Rate(mbps));
    else Simulator::Schedule(Seconds(at), [&hops, mbps] { hops[0]->SetDataRate(Rate(mbps)); });
  }

  std::vector<Ptr<PacketSink>> sinks;
  uint16_t port = 5000;
  const auto add = [&](uint32_t from, uint32_t to) {
    Ptr<Node> sender = routers.Get(from), receiver = routers.Get(to);
    Ipv4Address address = far[to - 1];
    if (access_ms > 0) {
      const Time late = NanoSeconds(std::llround(access_ms * 1e6));
      Ipv4Address unused;
      sender = CreateObject<Node>(), receiver = CreateObject<Node>();
      InternetStackHelper().Install(sender);
      InternetStackHelper().Install(receiver);
      Join(sender, routers.Get(from), access, late, kUnlimited, &unused);
      Join(routers.Get(to), receiver, access, late, kUnlimited, &address);
    }
    ++port;
    PacketSinkHelper receivers("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    const double start = stagger * static_cast<double>(sinks.size());
    sinks.push_back(DynamicCast<PacketSink>(receivers.Install(receiver).Get(0)));
    BulkSendHelper senders("ns3::TcpSocketFactory", InetSocketAddress(address, port));
    senders.SetAttribute("MaxBytes", UintegerValue(0));
    senders.SetAttribute("SendSize", UintegerValue(100 * mss));
    senders.Install(sender).Start(Seconds(start));
  };
  for (uint32_t i = 0; i < flows; ++i) add(0, static_cast<uint32_t>(speeds.size()));
  for (uint32_t hop = 0; hop < speeds.size(); ++hop) {
    for (uint32_t i = 0; i < cross; ++i) add(hop, hop + 1);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  std::vector<uint64_t> before(sinks.size());
  Simulator::Schedule(Seconds(warm_s), [&] {
    for (size_t i = 0; i < sinks.size(); ++i) before[i] = sinks[i]->GetTotalRx();
  });
  Simulator::Stop(Seconds(end_s));
  Simulator::Run();

  std::printf("%s,%s,%u,%u,%s,%s,%g,%g,%g,%u,%g,%g,%g,", label.c_str(), cc.c_str(), flows, cross, rates.c_str(),
              steps.c_str(), rtt, access_ms, access, buffer, end_s, warm_s, stagger);
  for (size_t i = 0; i < sinks.size(); ++i) {
    std::printf("%s%.8g", i ? ";" : "",
                static_cast<double>(sinks[i]->GetTotalRx() - before[i]) * 8e-6 / (end_s - warm_s));
  }
  std::printf(",");
  for (size_t i = 0; i < drops.size(); ++i) std::printf("%s%lu", i ? ";" : "", drops[i]);
  std::printf("\n");
  Simulator::Destroy();
  return 0;
}
