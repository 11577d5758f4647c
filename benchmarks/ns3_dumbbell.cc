// The benchmark's one-flow scenario in ns-3, for the speed ratio that benchmarks/simulator.py reports:
// sender -- 1 Gbit/s, 1 ms -- router -- bottleneck -- router -- 1 Gbit/s, 1 ms -- receiver, bulk CUBIC
// flows, nothing traced. benchmarks/simulator.py compiles it against the wheel `ns3==3.44.post0`.
//
//   ns3_dumbbell --rate=100 --rtt=48 --buffer=400 --flows=1 --duration=60
//
// prints one line of JSON: data packets sent by the senders' devices, seconds of processor and of wall
// clock that Simulator::Run took, and the goodput.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <ctime>
#include <iostream>

using namespace ns3;

namespace {

PointToPointHelper MakeLink(double rateMbps, double delayMs, uint32_t queuePackets) {
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rateMbps * 1e6))));
  link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(int64_t(delayMs * 1000 + 0.5))));
  link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queuePackets)));
  link.DisableFlowControl();  // no queue discipline above the device: its queue is the only one
  return link;
}

void SetTcpDefaults() {
  const uint32_t mss = 1448, socketBytes = 64'000'000;
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socketBytes));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socketBytes));
}

double ProcessorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char* argv[]) {
  double rateMbps = 100, rttMs = 48, durationS = 60;
  uint32_t buffer = 400, flows = 1;
  CommandLine command(__FILE__);
  command.AddValue("rate", "bottleneck, Mbit/s", rateMbps);
  command.AddValue("rtt", "propagation round trip, ms, access links included", rttMs);
  command.AddValue("buffer", "bottleneck queue, packets", buffer);
  command.AddValue("flows", "number of CUBIC flows", flows);
  command.AddValue("duration", "simulated seconds", durationS);
  command.Parse(argc, argv);
  SetTcpDefaults();

  const double accessMs = 1;
  const uint32_t deep = 1'000'000;
  NodeContainer routers, senders, receivers;
  routers.Create(2);
  senders.Create(flows);
  receivers.Create(flows);
  InternetStackHelper stack;
  stack.Install(routers);
  stack.Install(senders);
  stack.Install(receivers);

  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  NetDeviceContainer bottleneck =
      MakeLink(rateMbps, rttMs / 2 - 2 * accessMs, buffer).Install(routers);
  DynamicCast<PointToPointNetDevice>(bottleneck.Get(1))
      ->GetQueue()
      ->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, deep));  // the way back drops no ACK
  addresses.Assign(bottleneck);

  PointToPointHelper access = MakeLink(1000, accessMs, deep);
  std::vector<Ptr<PointToPointNetDevice>> senderDevices;
  ApplicationContainer sinks;
  for (uint32_t i = 0; i < flows; ++i) {
    addresses.NewNetwork();
    NetDeviceContainer in = access.Install(senders.Get(i), routers.Get(0));
    addresses.Assign(in);
    addresses.NewNetwork();
    NetDeviceContainer out = access.Install(routers.Get(1), receivers.Get(i));
    const Ipv4Address receiver = addresses.Assign(out).GetAddress(1);
    senderDevices.push_back(DynamicCast<PointToPointNetDevice>(in.Get(0)));

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    sinks.Add(sink.Install(receivers.Get(i)));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receiver, 5000));
    bulk.SetAttribute("SendSize", UintegerValue(144800));
    bulk.Install(senders.Get(i)).Start(Seconds(0.1 * i));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  Simulator::Stop(Seconds(durationS));
  const double cpu = ProcessorSeconds();
  const auto wall = std::chrono::steady_clock::now();
  Simulator::Run();
  const double cpuS = ProcessorSeconds() - cpu;
  const double wallS =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();

  uint64_t packets = 0, bytes = 0;
  for (const auto& device : senderDevices) packets += device->GetQueue()->GetTotalReceivedPackets();
  for (uint32_t i = 0; i < flows; ++i) bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
  std::cout << "{\"data_packets\": " << packets << ", \"cpu_s\": " << cpuS << ", \"wall_s\": " << wallS
            << ", \"goodput_mbps\": " << bytes * 8e-6 / durationS << "}" << std::endl;
  Simulator::Destroy();
  return 0;
}
