// Loss detection, recovery, RTT estimation and time-outs: where the two stacks differ most.
#pragma once
#include <memory>

#include "netbuf/scoreboard.h"

namespace netbuf {

class Sender;

class Recovery {
 public:
  virtual ~Recovery() = default;
  virtual bool takes_every_ack() const = 0;         // on_ack even for undisturbed ACKs, never on_clean_ack
  virtual void on_established(Sender&, Time rtt) = 0; // rtt of the SYN
  virtual void on_ack(Sender&, AckWork&) = 0;       // state is not open, or the ACK carries SACKs or is a duplicate
  // Without SACK, before all else: repeated: an ACK that says nothing but that something has arrived.
  virtual void count_arrivals(Sender&, AckWork&, bool repeated) { (void)repeated; }
  virtual void on_timer(Sender&) = 0;               // the retransmission timer has expired
  virtual void on_retransmitted(Sender&, uint32_t segment) = 0;
  virtual void on_new_data(Sender&, uint32_t packets) = 0;  // a round of new data has been sent
  virtual void keep_window(Sender&) {}              // what was reduced so far is not given back, whatever proves needless
  virtual Time rto() const = 0;                     // as it stands, without back-off; 0: no sample yet
  // Undisturbed ACK of data sent once and in order, from oldest_sent to latest_sent: re-arms the timer.
  virtual void on_clean_ack(Sender&, Time oldest_sent, Time latest_sent, uint32_t latest_segment) = 0;
};
std::unique_ptr<Recovery> make_linux_recovery();
std::unique_ptr<Recovery> make_linux_reno_recovery();  // without SACK
std::unique_ptr<Recovery> make_ns3_recovery();

}  // namespace netbuf
