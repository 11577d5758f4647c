// One run of ns-3 over a dumbbell whose delay changes, that jitters, that datagrams share, or whose way back
// carries data too. Prints the header of its CSV row with --header=1, its row without. README.md says how it is
// built, cells.py what is run.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <sstream>
#include <unordered_map>

using namespace ns3;

// A channel on which every packet of its first device is late by a time drawn uniformly from [0, most]; a
// packet that may not overtake arrives with the one before it at the earliest. What ns-3's own channel does
// otherwise is left as it is.
class JitterChannel : public PointToPointChannel {
 public:
  bool reorders = true;
  Time most;
  Ptr<UniformRandomVariable> draw = CreateObject<UniformRandomVariable>();

  bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time transmission) override {
    const uint32_t side = from == GetSource(0) ? 0 : 1;
    if (side == 1 || most.IsZero()) return PointToPointChannel::TransmitStart(packet, from, transmission);
    const Time late =
        NanoSeconds(static_cast<int64_t>(draw->GetValue(0.0, 1.0) * static_cast<double>(most.GetNanoSeconds())));
    Time arrival = Simulator::Now() + transmission + GetDelay() + late;
    if (!reorders) arrival = latest_ = std::max(arrival, latest_);
    const Ptr<PointToPointNetDevice> to = GetDestination(0);
    Simulator::ScheduleWithContext(to->GetNode()->GetId(), arrival - Simulator::Now(), &PointToPointNetDevice::Receive,
                                   to, packet->Copy());
    return true;
  }

 private:
  Time latest_;
};

// Waiting in a device's queue, from the warm-up on; drops from the start.
struct Watch {
  double warm_s = 0, sum_s = 0;
  uint64_t count = 0, drops = 0;
  std::deque<Time> entered;

  void Enter(Ptr<const Packet>) { entered.push_back(Simulator::Now()); }
  void Leave(Ptr<const Packet>) {
    const Time now = Simulator::Now();
    if (now.GetSeconds() >= warm_s) sum_s += (now - entered.front()).GetSeconds(), ++count;
    entered.pop_front();
  }
  void Drop(Ptr<const Packet>) { ++drops; }
  void Attach(Ptr<Queue<Packet>> queue) {
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Watch::Enter, this));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Watch::Leave, this));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Watch::Drop, this));
  }
  double MeanMs() const { return count ? sum_s / static_cast<double>(count) * 1e3 : 0.0; }
};

// Datagrams in order of departure, from the warm-up on.
struct Datagrams {
  double warm_s = 0, delay_sum_s = 0;
  uint64_t sent = 0, received = 0, received_window = 0;
  std::unordered_map<uint64_t, Time> departed;

  void Sent(Ptr<const Packet> packet) { ++sent, departed[packet->GetUid()] = Simulator::Now(); }
  void Received(Ptr<const Packet> packet, const Address&) {
    const auto found = departed.find(packet->GetUid());
    const Time now = Simulator::Now();
    ++received;
    if (now.GetSeconds() >= warm_s) ++received_window, delay_sum_s += (now - found->second).GetSeconds();
    departed.erase(found);
  }
};

struct End {
  Ptr<Node> node;
  Ipv4Address address;
};

constexpr uint32_t kUnlimited = 1'000'000;
constexpr double kAccessMs = 1, kAccessMbps = 1000;
constexpr uint32_t kHeaders = 30;  // PPP, IPv4, UDP

Ipv4AddressHelper g_addresses;

Ptr<PointToPointNetDevice> AddDevice(Ptr<Node> node, double mbps, uint32_t packets, Ptr<PointToPointChannel> channel) {
  auto device = CreateObject<PointToPointNetDevice>();
  device->SetAddress(Mac48Address::Allocate());
  device->SetDataRate(DataRate(static_cast<uint64_t>(std::llround(mbps * 1e6))));
  auto queue = CreateObject<DropTailQueue<Packet>>();
  queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
  device->SetQueue(queue);
  node->AddDevice(device);
  device->Attach(channel);
  return device;
}

NetDeviceContainer Join(Ptr<Node> a, Ptr<Node> b, double mbps, double back_mbps, Time delay, uint32_t packets,
                        uint32_t back_packets, Ptr<PointToPointChannel> channel,
                        Ipv4InterfaceContainer* interfaces = nullptr) {
  channel->SetAttribute("Delay", TimeValue(delay));
  NetDeviceContainer devices;
  devices.Add(AddDevice(a, mbps, packets, channel));
  devices.Add(AddDevice(b, back_mbps, back_packets, channel));
  g_addresses.NewNetwork();
  const Ipv4InterfaceContainer made = g_addresses.Assign(devices);
  if (interfaces) *interfaces = made;
  return devices;
}

// A host of its own behind a router.
End AddHost(Ptr<Node> router) {
  End end;
  end.node = CreateObject<Node>();
  InternetStackHelper().Install(end.node);
  Ipv4InterfaceContainer interfaces;
  Join(end.node, router, kAccessMbps, kAccessMbps, MicroSeconds(static_cast<int64_t>(kAccessMs * 1e3)), kUnlimited,
       kUnlimited, CreateObject<PointToPointChannel>(), &interfaces);
  end.address = interfaces.GetAddress(0);
  return end;
}

Ptr<PacketSink> AddTcp(Ptr<Node> from, Ptr<Node> to, uint32_t mss, double start_s) {
  const End sender = AddHost(from), receiver = AddHost(to);
  PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
  const auto sink = DynamicCast<PacketSink>(sinks.Install(receiver.node).Get(0));
  BulkSendHelper senders("ns3::TcpSocketFactory", InetSocketAddress(receiver.address, 5000));
  senders.SetAttribute("MaxBytes", UintegerValue(0));
  senders.SetAttribute("SendSize", UintegerValue(100 * mss));
  senders.Install(sender.node).Start(Seconds(start_s));
  return sink;
}

int main(int argc, char* argv[]) {
  std::string label = "cell", cc = "NewReno", steps;
  uint32_t flows = 1, back_flows = 0, buffer = 100, back_buffer = 0, seed = 1, udp_bytes = 1502, header = 0, mss = 1448;
  bool reorder = true, udp_random = false, udp_back = false;
  double rate = 10, back_rate = 0, rtt = 50, jitter = 0, udp = 0, udp_on = 0, udp_off = 0, udp_start = 0, end_s = 60,
         warm_s = 10, stagger = 0.1, back_start = 0.05;
  CommandLine cmd(__FILE__);
  cmd.AddValue("header", "print the names of the columns only", header);
  cmd.AddValue("label", "of the cell's kind", label);
  cmd.AddValue("cc", "congestion control: NewReno, LinuxReno, Cubic", cc);
  cmd.AddValue("N", "flows there", flows);
  cmd.AddValue("back", "flows the other way", back_flows);
  cmd.AddValue("rate", "bottleneck, Mbit/s", rate);
  cmd.AddValue("backRate", "its way back, Mbit/s; 0: the same", back_rate);
  cmd.AddValue("rtt", "propagation there and back, ms", rtt);
  cmd.AddValue("buffer", "bottleneck, packets", buffer);
  cmd.AddValue("backBuffer", "of the way back, packets; 0: no limit", back_buffer);
  cmd.AddValue("steps", "t:rtt;t:rtt: propagation there and back from then on, s and ms", steps);
  cmd.AddValue("jitter", "most of a uniform delay of each packet on the way there, ms", jitter);
  cmd.AddValue("reorder", "whether such packets overtake each other", reorder);
  cmd.AddValue("udp", "rate of datagrams on the bottleneck while on, Mbit/s; 0: none", udp);
  cmd.AddValue("udpBytes", "of a datagram on the bottleneck", udp_bytes);
  cmd.AddValue("udpOn", "on period, s; 0: always on", udp_on);
  cmd.AddValue("udpOff", "off period, s", udp_off);
  cmd.AddValue("udpRandom", "whether periods are exponential", udp_random);
  cmd.AddValue("udpStart", "s", udp_start);
  cmd.AddValue("udpBack", "whether datagrams go the other way", udp_back);
  cmd.AddValue("T", "s", end_s);
  cmd.AddValue("warm", "from when means are taken, s", warm_s);
  cmd.AddValue("seed", "", seed);
  cmd.Parse(argc, argv);
  if (header) {
    std::puts("label,ns3,cc,N,N_back,B_mbps,B_back_mbps,rtt_prop_ms,access_mbps,buffer_pkts,buffer_back_pkts,"
              "rtt_steps,jitter_ms,reorder,udp_mbps,udp_bytes,udp_on_s,udp_off_s,udp_random,udp_start_s,udp_back,"
              "T_s,warm_s,stagger_s,back_start_s,seed,goodput_w_mbps,goodput_back_w_mbps,sojourn_mean_w_ms,"
              "sojourn_back_mean_w_ms,queue_drops,queue_drops_back,udp_received_w_mbps,udp_loss,udp_delay_w_ms");
    return 0;
  }
  if (back_rate <= 0) back_rate = rate;
  RngSeedManager::SetSeed(1);
  RngSeedManager::SetRun(seed);

  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::Tcp" + cc)));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64'000'000));
  Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));

  g_addresses.SetBase("10.0.0.0", "255.255.255.252");
  NodeContainer routers(2);
  InternetStackHelper().Install(routers);
  const auto one_way = [](double rtt_ms) { return NanoSeconds(std::llround((rtt_ms / 2 - 2 * kAccessMs) * 1e6)); };
  auto channel = CreateObject<JitterChannel>();
  channel->most = NanoSeconds(std::llround(jitter * 1e6));
  channel->reorders = reorder;
  const auto bottleneck = Join(routers.Get(0), routers.Get(1), rate, back_rate, one_way(rtt), buffer,
                               back_buffer ? back_buffer : kUnlimited, channel);
  std::istringstream list(steps);
  for (std::string step; std::getline(list, step, ';');) {
    const size_t colon = step.find(':');
    const Time delay = one_way(std::stod(step.substr(colon + 1)));
    Simulator::Schedule(Seconds(std::stod(step.substr(0, colon))),
                        [channel, delay] { channel->SetAttribute("Delay", TimeValue(delay)); });
  }
  Watch there, back;
  there.warm_s = back.warm_s = warm_s;
  there.Attach(DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue());
  back.Attach(DynamicCast<PointToPointNetDevice>(bottleneck.Get(1))->GetQueue());

  std::vector<Ptr<PacketSink>> sinks, back_sinks;
  for (uint32_t i = 0; i < flows; ++i) sinks.push_back(AddTcp(routers.Get(0), routers.Get(1), mss, i * stagger));
  for (uint32_t i = 0; i < back_flows; ++i) {
    back_sinks.push_back(AddTcp(routers.Get(1), routers.Get(0), mss, back_start + i * stagger));
  }

  Datagrams datagrams;
  datagrams.warm_s = warm_s;
  if (udp > 0) {
    const End from = AddHost(routers.Get(udp_back ? 1 : 0)), to = AddHost(routers.Get(udp_back ? 0 : 1));
    PacketSinkHelper receivers("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 6000));
    receivers.Install(to.node).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Datagrams::Received, &datagrams));
    const uint32_t payload = udp_bytes - kHeaders;
    ApplicationContainer source;
    if (udp_on > 0) {
      OnOffHelper sources("ns3::UdpSocketFactory", InetSocketAddress(to.address, 6000));
      sources.SetConstantRate(DataRate(static_cast<uint64_t>(std::llround(udp * 1e6 * payload / udp_bytes))), payload);
      const auto period = [&](double mean_s) {
        std::ostringstream text;
        text << (udp_random ? "ns3::ExponentialRandomVariable[Mean=" : "ns3::ConstantRandomVariable[Constant=")
             << mean_s << "]";
        return StringValue(text.str());
      };
      sources.SetAttribute("OnTime", period(udp_on));
      sources.SetAttribute("OffTime", period(udp_off));
      source = sources.Install(from.node);
    } else {
      UdpClientHelper sources(to.address, 6000);
      sources.SetAttribute("PacketSize", UintegerValue(payload));
      sources.SetAttribute("MaxPackets", UintegerValue(0));
      sources.SetAttribute("Interval", TimeValue(NanoSeconds(std::llround(udp_bytes * 8e3 / udp))));
      source = sources.Install(from.node);
    }
    source.Start(Seconds(udp_start));
    source.Get(0)->TraceConnectWithoutContext("Tx", MakeCallback(&Datagrams::Sent, &datagrams));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  const auto total = [](const std::vector<Ptr<PacketSink>>& all) {
    uint64_t bytes = 0;
    for (const auto& sink : all) bytes += sink->GetTotalRx();
    return static_cast<double>(bytes);
  };
  double before = 0, back_before = 0;
  Simulator::Schedule(Seconds(warm_s), [&] { before = total(sinks), back_before = total(back_sinks); });
  Simulator::Stop(Seconds(end_s));
  Simulator::Run();

  const double mbit = 8e-6 / (end_s - warm_s);
  std::printf("%s,3.44,%s,%u,%u,%g,%g,%g,%g,%u,%u,%s,%g,%d,%g,%u,%g,%g,%d,%g,%d,%g,%g,%g,%g,%u,", label.c_str(),
              cc.c_str(), flows, back_flows, rate, back_rate, rtt, kAccessMbps, buffer, back_buffer, steps.c_str(),
              jitter, reorder, udp, udp_bytes, udp_on, udp_off, udp_random, udp_start, udp_back, end_s, warm_s,
              stagger, back_start, seed);
  const double udp_lost =
      datagrams.sent ? 1 - static_cast<double>(datagrams.received) / static_cast<double>(datagrams.sent) : 0;
  std::printf("%.8g,%.8g,%.8g,%.8g,%lu,%lu,%.8g,%.8g,%.8g\n", (total(sinks) - before) * mbit,
              (total(back_sinks) - back_before) * mbit, there.MeanMs(), back.MeanMs(), there.drops, back.drops,
              static_cast<double>(datagrams.received_window * udp_bytes) * mbit, udp_lost,
              datagrams.received_window
                  ? datagrams.delay_sum_s / static_cast<double>(datagrams.received_window) * 1e3
                  : 0.0);
  Simulator::Destroy();
  return 0;
}
