// The records at the end of the files here. A new congestion control is a file, a line here and one in registry.cc.
#pragma once
#include "netbuf/tcp.h"

namespace netbuf {

extern const CongestionControlRecord newreno_record;
extern const CongestionControlRecord linuxreno_record;
extern const CongestionControlRecord cubic_record;
extern const CongestionControlRecord bbr_record;
extern const CongestionControlRecord vegas_record;
extern const CongestionControlRecord westwood_record;
extern const CongestionControlRecord agent_record;

}  // namespace netbuf
