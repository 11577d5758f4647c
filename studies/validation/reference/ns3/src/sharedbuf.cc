// Family B: 10 senders -> switch with a 2-queue shared buffer -> bottleneck -> sink. See README.md.
#include "common.h"

// ---------------- shared-buffer queue disc (Dynamic Threshold / ABM), round robin by packet -------------
class SharedBufferQueueDisc : public QueueDisc
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::SharedBufferQueueDisc").SetParent<QueueDisc>()
            .AddConstructor<SharedBufferQueueDisc>();
        return tid;
    }
    SharedBufferQueueDisc() : QueueDisc(QueueDiscSizePolicy::NO_LIMITS) {}
    double alpha[2] = {1, 1};
    uint32_t bmax = 200;
    bool abm = false;
    uint64_t drops[2] = {0, 0}, arrivals[2] = {0, 0};
    bool trace = true;
    TimeHist len[2], occ;
    static int Classify(Ptr<const Packet> p) // TCP/UDP destination port 5001 = priority 1, all else 0
    {
        uint8_t b[4];
        p->CopyData(b, 4);
        return ((b[2] << 8) | b[3]) == 5001 ? 1 : 0;
    }
    void Update()
    {
        if (!trace) return;
        double t = NowS();
        uint32_t a = GetInternalQueue(0)->GetNPackets(), c = GetInternalQueue(1)->GetNPackets();
        len[0].set(a, t);
        len[1].set(c, t);
        occ.set(a + c, t);
    }
    bool DoEnqueue(Ptr<QueueDiscItem> item) override
    {
        int q = Classify(item->GetPacket());
        arrivals[q]++;
        uint32_t n[2] = {GetInternalQueue(0)->GetNPackets(), GetInternalQueue(1)->GetNPackets()};
        double freeB = double(bmax) - n[0] - n[1];
        double thr = alpha[q] * freeB;
        if (abm) // alpha_p * 1/n_p * (B-Q) * mu_p/b ; one port => n_p = 1 ; mu_p/b = 1/(backlogged queues)
        {
            int act = (n[0] > 0 || q == 0) + (n[1] > 0 || q == 1);
            thr /= act;
        }
        if (n[q] < thr && freeB >= 1)
        {
            GetInternalQueue(q)->Enqueue(item);
            Update();
            return true;
        }
        drops[q]++;
        DropBeforeEnqueue(item, "DT");
        return false;
    }
    Ptr<QueueDiscItem> DoDequeue() override
    {
        for (int k = 0; k < 2; k++)
        {
            int q = (m_next + k) & 1;
            if (auto it = GetInternalQueue(q)->Dequeue())
            {
                m_next = q ^ 1;
                Update();
                return it;
            }
        }
        return nullptr;
    }
    Ptr<const QueueDiscItem> DoPeek() override
    {
        for (int k = 0; k < 2; k++)
            if (auto it = GetInternalQueue((m_next + k) & 1)->Peek()) return it;
        return nullptr;
    }
    bool CheckConfig() override
    {
        while (GetNInternalQueues() < 2)
            AddInternalQueue(CreateObjectWithAttributes<DropTailQueue<QueueDiscItem>>("MaxSize",
                QueueSizeValue(QueueSize("1000000p"))));
        return true;
    }
    void InitializeParams() override {}

  private:
    int m_next = 0;
};
NS_OBJECT_ENSURE_REGISTERED(SharedBufferQueueDisc);

struct Flow
{
    uint32_t id, sender, size, prio;
    double start, fct = -1;
    uint32_t rx = 0;
};
static std::vector<Flow> F;
static std::vector<Ptr<Node>> S;
static Ipv4Address sinkAddr;
static uint64_t sinkBytes = 0, connected = 0;
static void Start(uint32_t i)
{
    Flow& f = F[i];
    auto s = Socket::CreateSocket(S[f.sender], TcpSocketFactory::GetTypeId());
    s->Bind(InetSocketAddress(Ipv4Address::GetAny(), 1024 + f.id));
    uint32_t sz = f.size;
    s->SetConnectCallback(Callback<void, Ptr<Socket>>([sz](Ptr<Socket> k) { connected++;
        k->Send(Create<Packet>(sz)); k->Close(); }),
                          MakeNullCallback<void, Ptr<Socket>>());
    s->Connect(InetSocketAddress(sinkAddr, 5000 + f.prio));
}
static void Recv(uint32_t id, Ptr<Socket> s)
{
    while (auto p = s->Recv())
    {
        if (!p->GetSize()) break;
        F[id].rx += p->GetSize();
        sinkBytes += p->GetSize();
    }
    if (F[id].rx >= F[id].size && F[id].fct < 0) F[id].fct = NowS() - F[id].start;
}
static void Accept(Ptr<Socket> s, const Address& from)
{
    uint32_t id = InetSocketAddress::ConvertFrom(from).GetPort() - 1024;
    s->SetRecvCallback(Callback<void, Ptr<Socket>>([id](Ptr<Socket> k) { Recv(id, k); }));
    s->SetCloseCallbacks(Callback<void, Ptr<Socket>>([](Ptr<Socket> k) { k->Close(); }), Callback<void,
        Ptr<Socket>>([](Ptr<Socket>) {}));
}

int main(int argc, char* argv[])
{
    TcpCfg tc;
    uint32_t perq = 100, seed = 1, metrics = 1;
    double B = 10, access = 100, T = 60, accD = 0.1, bnD = 10, load = 0.2;
    std::string flows, out = "b.csv", fct, policy = "naive", variant = "thesis";
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "flow list CSV: flow_id,start_s,sender,size_bytes,priority", flows);
    cmd.AddValue("cc", "", tc.cc);
    cmd.AddValue("B", "Mbps", B);
    cmd.AddValue("access", "Mbps", access);
    cmd.AddValue("perq", "per-queue max; shared buffer = 2*perq packets", perq);
    cmd.AddValue("policy", "naive (1,1) | soph (8,1) | abm (8,1 with ABM scaling)", policy);
    cmd.AddValue("T", "s", T);
    cmd.AddValue("load", "label", load);
    cmd.AddValue("variant", "label", variant);
    cmd.AddValue("seed", "label + RNG run", seed);
    cmd.AddValue("minRto", "", tc.minRto);
    cmd.AddValue("delack", "", tc.delack);
    cmd.AddValue("metrics", "", metrics);
    cmd.AddValue("fct", "per-flow CSV out", fct);
    cmd.AddValue("out", "", out);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(seed);
    tc.sndbuf = tc.rcvbuf = 40000000;
    ApplyTcp(tc);
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.5));
    auto c0 = std::chrono::steady_clock::now();
    {
        std::ifstream f(flows);
        std::string line;
        std::getline(f, line);
        while (std::getline(f, line))
        {
            Flow x;
            char c;
            std::istringstream i(line);
            i >> x.id >> c >> x.start >> c >> x.sender >> c >> x.size >> c >> x.prio;
            if (x.start < T) F.push_back(x);
        }
    }
    NS_ABORT_MSG_IF(F.empty() || F.size() > 64000, "flow list");
    NodeContainer snd, mid, snk;
    snd.Create(10);
    mid.Create(1);
    snk.Create(1);
    InternetStackHelper st;
    st.Install(snd);
    st.Install(mid);
    st.Install(snk);
    auto mk = [](double mbps, double ms, uint32_t q, bool flow) {
        PointToPointHelper p;
        p.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(mbps * 1e6))));
        p.SetChannelAttribute("Delay", TimeValue(MicroSeconds(int64_t(ms * 1000 + 0.5))));
        p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, q)));
        if (!flow) p.DisableFlowControl();
        return p;
    };
    auto pA = mk(access, accD, 1000000, false), pB = mk(B, bnD, 1, true);
    Ipv4AddressHelper ad;
    std::vector<Ptr<PointToPointNetDevice>> sd;
    for (uint32_t i = 0; i < 10; i++)
    {
        auto d = pA.Install(snd.Get(i), mid.Get(0));
        std::ostringstream b;
        b << "10.1." << i << ".0";
        ad.SetBase(b.str().c_str(), "255.255.255.0");
        ad.Assign(d);
        S.push_back(snd.Get(i));
        sd.push_back(DynamicCast<PointToPointNetDevice>(d.Get(0)));
    }
    auto bn = pB.Install(mid.Get(0), snk.Get(0));
    ad.SetBase("10.0.0.0", "255.255.255.0");
    sinkAddr = ad.Assign(bn).GetAddress(1);
    TrafficControlHelper().Uninstall(bn);
    auto qd = CreateObject<SharedBufferQueueDisc>();
    qd->bmax = 2 * perq;
    qd->trace = metrics;
    if (policy != "naive") qd->alpha[0] = 8;
    qd->abm = policy == "abm";
    mid.Get(0)->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(bn.Get(0), qd);
    auto rev = DynamicCast<PointToPointNetDevice>(bn.Get(1)); // ACK direction: deep FIFO qdisc, never drops
    {
        TrafficControlHelper t;
        t.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000000p"));
        NetDeviceContainer one;
        one.Add(bn.Get(1));
        t.Install(one);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    std::vector<Ptr<Socket>> ls;
    for (int p = 0; p < 2; p++)
    {
        auto l = Socket::CreateSocket(snk.Get(0), TcpSocketFactory::GetTypeId());
        l->Bind(InetSocketAddress(Ipv4Address::GetAny(), 5000 + p));
        l->Listen();
        l->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Accept));
        ls.push_back(l);
    }
    // probe: 64 B UDP payload from sender 0, priority 0, one per second, one-way delay
    Samples probe;
    uint32_t probeSent = 0;
    auto ps = Socket::CreateSocket(snd.Get(0), UdpSocketFactory::GetTypeId());
    ps->Bind();
    ps->Connect(InetSocketAddress(sinkAddr, 9));
    auto pr = Socket::CreateSocket(snk.Get(0), UdpSocketFactory::GetTypeId());
    pr->Bind(InetSocketAddress(Ipv4Address::GetAny(), 9));
    std::vector<double> pt;
    pr->SetRecvCallback(Callback<void, Ptr<Socket>>([&](Ptr<Socket> k) {
        while (auto p = k->Recv())
        {
            uint8_t b[4];
            p->CopyData(b, 4);
            probe.add(NowS() - pt[(b[0] << 8) | b[1]]);
        }
    }));
    std::function<void()> ping = [&]() {
        uint8_t b[64] = {uint8_t(probeSent >> 8), uint8_t(probeSent)};
        pt.push_back(NowS());
        probeSent++;
        ps->Send(Create<Packet>(b, 64));
        Simulator::Schedule(Seconds(1), ping);
    };
    Simulator::Schedule(Seconds(0.5), ping);
    for (uint32_t i = 0; i < F.size(); i++) NS_ABORT_MSG_IF(F[i].id != i, "flow ids must be 0..n-1");
    for (uint32_t i = 0; i < F.size(); i++) Simulator::Schedule(Seconds(F[i].start), &Start, i);
    Simulator::Stop(Seconds(T));
    auto c1 = std::chrono::steady_clock::now();
    double cpu0 = CpuS();
    Simulator::Run();
    double cpu = CpuS() - cpu0;
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - c1).count();
    double setup = std::chrono::duration<double>(c1 - c0).count();
    qd->Update();
    uint64_t dataP = 0, ackP = rev->GetQueue()->GetTotalReceivedPackets();
    for (auto& d : sd) dataP += d->GetQueue()->GetTotalReceivedPackets();
    double baseRtt = 2 * (accD + bnD) * 1e-3;
    Row r;
    r.s("ns3", NS3REF_VERSION);
    r.s("variant", variant);
    r.s("policy", policy);
    r.s("cc", tc.cc);
    r.d("B_mbps", B);
    r.d("access_mbps", access);
    r.d("perq_pkts", perq);
    r.d("bmax_pkts", 2 * perq);
    r.d("load", load);
    r.d("seed", seed);
    r.d("T_s", T);
    r.d("min_rto_s", tc.minRto);
    r.d("delack", tc.delack);
    double off = 0;
    for (auto& f : F) off += f.size;
    r.d("offered_mbps", off * 8 / T / 1e6);
    r.d("sink_goodput_mbps", sinkBytes * 8.0 / T / 1e6);
    r.d("link_util", qd->GetStats().GetNDroppedPackets(QueueDisc::INTERNAL_QUEUE_DROP) >= 0 ? (qd->GetStats()
        .nTotalDequeuedBytes + 2.0 * qd->GetStats().nTotalDequeuedPackets) * 8 / (B * 1e6 * T) : 0);
    r.d("flows_started", F.size());
    r.d("flows_connected", connected);
    for (int p = -1; p < 2; p++)
    {
        std::string k = p < 0 ? "all" : "p" + std::to_string(p);
        Samples ft, sr, sdif;
        uint32_t n = 0;
        for (auto& f : F)
            if (p < 0 || (int)f.prio == p)
            {
                n++;
                if (f.fct < 0) continue;
                double ideal = f.size * 8.0 / (B * 1e6) + baseRtt;
                ft.add(f.fct);
                sr.add(f.fct / ideal);
                sdif.add(f.fct - ideal);
            }
        r.d("n_" + k, n);
        r.d("done_" + k, ft.v.size());
        r.d("fct_mean_s_" + k, ft.mean());
        r.d("fct_p50_s_" + k, ft.pct(50));
        r.d("fct_p99_s_" + k, ft.pct(99));
        r.d("slow_mean_" + k, sr.mean());
        r.d("slow_p50_" + k, sr.pct(50));
        r.d("slow_p99_" + k, sr.pct(99));
        r.d("slow_max_" + k, sr.max());
        r.d("diff_mean_s_" + k, sdif.mean());
        r.d("diff_p99_s_" + k, sdif.pct(99));
        r.d("diff_max_s_" + k, sdif.max());
    }
    r.d("arrivals_q0", qd->arrivals[0]);
    r.d("arrivals_q1", qd->arrivals[1]);
    r.d("drops_q0", qd->drops[0]);
    r.d("drops_q1", qd->drops[1]);
    r.d("qlen_mean_q0", qd->len[0].mean());
    r.d("qlen_mean_q1", qd->len[1].mean());
    r.d("qlen_p99_q0", qd->len[0].pct(99));
    r.d("qlen_p99_q1", qd->len[1].pct(99));
    r.d("occ_mean_pct", 100 * qd->occ.mean() / (2 * perq));
    r.d("occ_p99_pct", 100 * qd->occ.pct(99) / (2 * perq));
    r.d("occ_max_pct", 100.0 * qd->occ.peak / (2 * perq));
    r.d("probe_sent", probeSent);
    r.d("probe_recv", probe.v.size());
    r.d("probe_oneway_mean_ms", probe.mean() * 1e3);
    r.d("probe_oneway_p95_ms", probe.pct(95) * 1e3);
    r.d("wall_run_s", wall);
        r.d("cpu_run_s", cpu);
    r.d("wall_setup_s", setup);
    r.d("events", Simulator::GetEventCount());
    r.d("data_pkts_dev", dataP);
    r.d("ack_pkts_dev", ackP);
    r.d("peak_rss_mb", PeakRssMB());
    Row::Write(out, {r});
    if (!fct.empty())
    {
        std::ofstream f(fct);
        f << "flow_id,start_s,sender,size_bytes,priority,rx_bytes,fct_s\n";
        for (auto& x : F) f << x.id << "," << std::setprecision(9) << x.start << "," << x.sender << ","
            << x.size << "," << x.prio << "," << x.rx << "," << x.fct << "\n";
    }
    if (!metrics) std::cout << "cpu " << cpu << " wall " << wall << " pkts " << dataP + ackP << " pkt/s "
        << (dataP + ackP) / wall << " rss " << PeakRssMB() << std::endl;
    return 0; // skip Simulator::Destroy(): lambdas capture the stack
}
