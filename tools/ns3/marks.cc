// One run of ns-3 over a dumbbell whose bottleneck has a queue discipline that marks (ECN), or drop-tail.
// Prints the header of its CSV row with --header=1, its row without.
// README.md says how it is built, marks.py what is run.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cmath>
#include <cstdio>

using namespace ns3;

constexpr double kAccessMs = 1;

int main(int argc, char* argv[]) {
  std::string label = "cell", cc = "NewReno", qdisc = "Fifo";
  uint32_t flows = 1, buffer = 100, mark = 0, seed = 1, header = 0, mss = 1448;
  bool ecn = false;
  double rate = 10, rtt = 50, access = 1000, end_s = 60, warm_s = 10, stagger = 0.1;
  CommandLine cmd(__FILE__);
  cmd.AddValue("header", "print the names of the columns only", header);
  cmd.AddValue("label", "of the cell's kind", label);
  cmd.AddValue("cc", "congestion control: NewReno, Cubic, Dctcp, Ledbat", cc);
  cmd.AddValue("N", "flows", flows);
  cmd.AddValue("rate", "bottleneck, Mbit/s", rate);
  cmd.AddValue("rtt", "propagation there and back, ms", rtt);
  cmd.AddValue("buffer", "bottleneck, packets", buffer);
  cmd.AddValue("qdisc", "Fifo, CoDel, or Step: marks while so many packets wait", qdisc);
  cmd.AddValue("mark", "of Step, packets", mark);
  cmd.AddValue("ecn", "whether flows and discipline speak it", ecn);
  cmd.AddValue("T", "s", end_s);
  cmd.AddValue("warm", "from when means are taken, s", warm_s);
  cmd.AddValue("seed", "", seed);
  cmd.Parse(argc, argv);
  if (header) {
    std::puts("label,ns3,cc,N,B_mbps,rtt_prop_ms,access_mbps,buffer_pkts,marking,mark_pkts,ecn,T_s,warm_s,stagger_s,"
              "seed,goodput_w_mbps,sojourn_mean_w_ms,queue_drops,queue_marks_w");
    return 0;
  }
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(seed);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::Tcp" + cc)));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
  Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));

  NodeContainer routers(2);
  InternetStackHelper internet;
  internet.Install(routers);
  const auto point_to_point = [](double mbps, double delay_ms) {
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6)))));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(delay_ms * 1e6))));
    return helper;
  };
  PointToPointHelper middle = point_to_point(rate, rtt / 2 - 2 * kAccessMs);
  middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  const NetDeviceContainer bottleneck = middle.Install(routers);
  TrafficControlHelper control;
  const QueueSize size(QueueSizeUnit::PACKETS, buffer);
  if (qdisc == "CoDel") {
    control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", QueueSizeValue(size), "UseEcn", BooleanValue(ecn));
  } else if (qdisc == "Step") {
    // RED whose average is the queue at the moment, and which marks all from one threshold on.
    control.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", QueueSizeValue(size), "UseEcn", BooleanValue(ecn),
                             "UseHardDrop", BooleanValue(false), "QW", DoubleValue(1), "MinTh", DoubleValue(mark),
                             "MaxTh", DoubleValue(mark), "Gentle", BooleanValue(false));
  } else {
    control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(size));
  }
  const Ptr<QueueDisc> queue = control.Install(bottleneck.Get(0)).Get(0);
  double wait_s = 0;
  uint64_t waited = 0;
  queue->TraceConnectWithoutContext("SojournTime", MakeBoundCallback(
      +[](std::tuple<double*, uint64_t*, double> into, Time sojourn) {
        if (Simulator::Now().GetSeconds() < std::get<2>(into)) return;
        *std::get<0>(into) += sojourn.GetSeconds();
        ++*std::get<1>(into);
      }, std::make_tuple(&wait_s, &waited, warm_s)));
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  addresses.Assign(bottleneck);
  std::vector<Ptr<PacketSink>> sinks;
  for (uint32_t i = 0; i < flows; ++i) {
    NodeContainer ends(2);
    internet.Install(ends);
    Ipv4Address to;
    for (uint32_t side = 0; side < 2; ++side) {
      PointToPointHelper link = point_to_point(access, kAccessMs);
      link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
      const NetDeviceContainer devices = link.Install(ends.Get(side), routers.Get(side));
      addresses.NewNetwork();
      const Ipv4InterfaceContainer made = addresses.Assign(devices);
      TrafficControlHelper().Uninstall(devices);
      if (side == 1) to = made.GetAddress(0);
    }
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    sinks.push_back(DynamicCast<PacketSink>(sink.Install(ends.Get(1)).Get(0)));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(to, 5000));
    source.SetAttribute("SendSize", UintegerValue(100 * mss));
    source.Install(ends.Get(0)).Start(Seconds(i * stagger));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  const auto total = [&] {
    double bytes = 0;
    for (const auto& sink : sinks) bytes += static_cast<double>(sink->GetTotalRx());
    return bytes;
  };
  double before = 0;
  uint32_t marks_before = 0;
  Simulator::Schedule(Seconds(warm_s), [&] { before = total(), marks_before = queue->GetStats().nTotalMarkedPackets; });
  Simulator::Stop(Seconds(end_s));
  Simulator::Run();
  const QueueDisc::Stats& stats = queue->GetStats();
  std::printf("%s,3.44,%s,%u,%g,%g,%g,%u,%s,%u,%d,%g,%g,%g,%u,%.8g,%.8g,%u,%u\n", label.c_str(), cc.c_str(), flows,
              rate, rtt, access, buffer, qdisc.c_str(), mark, ecn, end_s, warm_s, stagger, seed,
              (total() - before) * 8e-6 / (end_s - warm_s),
              waited ? wait_s / static_cast<double>(waited) * 1e3 : 0.0, stats.nTotalDroppedPackets,
              stats.nTotalMarkedPackets - marks_before);
  Simulator::Destroy();
  return 0;
}
