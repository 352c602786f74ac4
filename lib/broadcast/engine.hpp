// The broadcasts of one rank (Swartvagher 2022, section 4.2.2): a state machine over a transport. Data reach a rank from the
// root or through other ranks, and a receive cannot tell. One thread uses an engine.
//
// Small data travel inside announcements. For larger ones, a rank announces them to its children, each child answers when it
// has a buffer, and segments follow; a rank forwards a segment as soon as it has it (cut-through). The first segment follows
// its announcement at once where the window is free, and the child's pool has room for it. A child that has no buffer yet is
// bypassed: its parent serves the children below it, so that a receive that is posted late delays nobody else. A child that
// takes no data (its process computes) delays others by about a millisecond.
//
// No operation costs more when others are open: messages with something to send are ordered, those that wait for a child
// whose window is full wait at that child, and the clock is read where something waits for a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "message.hpp"
#include "observer.hpp"
#include "transport.hpp"

namespace elbowroom::broadcast {

using Operation = std::uint64_t;  // a send or a receive; 0: none

// What a rank does with data for which no receive is posted yet and that others wait for behind it.
enum class Late {
  kBypass,        // its parent serves them
  kStoreForward,  // takes them into a buffer of its own while there is room, else as kBypass
  kPostpone,      // they wait (the thesis)
};

struct Settings {
  std::size_t inline_limit = 4096;  // bytes; smaller data travel in announcements
  std::size_t window = 128 << 10;   // bytes in flight to a rank, and to all that take them: two segments of 64 KiB
  double patience = 20e-6;          // s that a child may take at least to answer before later ones are served
  double grace = 0.5e-3;            // s that a child may take at least to receive before others are served besides
  std::size_t posted = 4;           // receives of segments that are posted ahead
  Late late = Late::kStoreForward;
  // Bytes for kStoreForward, and as many for what arrives before its receive: each root's share is the same.
  std::size_t pool = 16 << 20;
  std::vector<std::uint16_t> groups;  // the group (rack) of each rank; empty: one group
  std::vector<double> speeds;         // of the link of each rank, in any unit; empty: all alike
};

// How one broadcast travels.
struct Way {
  Tree tree;
  std::size_t segment = 0;  // bytes; 0: the whole message is one
  bool two_trees = false;   // even segments by one binary tree, odd ones by another, in which other ranks forward
};

struct Destination {
  std::int32_t rank = 0;
  std::int32_t priority = 0;
};

struct Event {
  enum class Kind {
    kReceived,  // of a receive: the data may be read
    kReleased,  // of both: the buffer may be written
    kFailed,    // of both: the operation is over; `text` says why
    kLost,      // `rank` is gone; the operation goes on with the others. Of a receive: what only it had will not come
  };
  Kind kind = Kind::kReceived;
  Operation operation = 0;
  int rank = -1;
  std::string text;
};

struct Counters {
  std::uint64_t broadcasts = 0;  // sends to more than one recipient
  std::uint64_t sends = 0;       // to one
  std::uint64_t receives = 0;
  std::uint64_t forwarded = 0;  // bytes sent for other roots
  std::uint64_t bypassed = 0;   // children whose subtree this rank took over
  std::uint64_t stored = 0;     // messages that waited in the pool
};

// Something that did not happen for a while.
struct Stall {
  Operation operation = 0;  // 0: forwarding for others
  Key key;
  double seconds = 0;
  std::vector<int> ranks;  // that it waits for
  // Whether the others have begun: data were announced here, or are wanted there. Else they may compute as long as they like.
  bool begun = true;
};

class Engine {
 public:
  Engine(Transport& transport, Settings settings);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Told of what happens from now on; null: nobody. It must outlive the engine.
  void observe(Observer* observer) { observer_ = observer; }

  // Receives `data.size()` bytes that the root sends with that context and tag: the first receive posted for a key gets the
  // first data sent. Throws std::invalid_argument for a root that is no other rank.
  Operation receive(const Key& key, std::span<std::byte> data);

  // Sends to each destination once, those of higher priority first. Throws std::invalid_argument for ranks that are not
  // others, ranks that are named twice, priorities below 0, and no destination. The data must stay until kReleased.
  Operation send(std::uint32_t context, std::int64_t tag, std::span<const std::byte> data,
                 std::span<const Destination> destinations, const Way& way);

  // Does what the next happening asks for; whether there was one.
  bool step();
  // Does all that can be done now; whether anything happened.
  bool progress();

  std::optional<Event> next_event();

  // What has not moved for `seconds`, with the ranks it waits for: again after as long a time where it has begun, else once.
  std::vector<Stall> stalls(double seconds);

  const Counters& counters() const { return counters_; }
  // Whether nothing is under way here: all operations are over, and nothing is stored or forwarded.
  bool idle() const;
  std::size_t pool_used() const { return pool_used_; }
  // Bytes that are being sent, or received after they were announced.
  std::size_t under_way() const { return under_way_; }
  // Keys and serials that are kept of messages, whatever is over.
  std::size_t remembered() const;

 private:
  struct Delivery;
  struct Outgoing;
  struct Incoming;
  struct Stream;
  struct Request;
  struct Peer;
  struct Announced;
  // Messages with something to send: the highest priority first, then the one that began first.
  struct Place {
    std::int32_t below = 0;  // the priority, negative
    std::uint64_t delivery = 0;
    auto operator<=>(const Place&) const = default;
  };

  // Messages that arrive (engine_receives.cpp).
  Stream& stream_of(const Key& key);
  void erase_if_empty(const Key& key);
  void erase_finished();
  void on_message(int peer, std::span<const std::byte> bytes);
  void on_announcement(int peer, Announcement& announcement);
  void on_inlined(const Announcement& announcement);
  void on_segment(int peer, const Answer& answer);
  void on_received(Ticket ticket);
  bool arrive(const Announcement& announcement);
  void tell_taken(int root, std::size_t bytes);
  bool follows(const Key& key, std::uint64_t previous);
  Delivery& add_delivery(const Announcement& announcement);
  void attach(Delivery& delivery, int peer, Announcement& announcement);
  void match(Stream& stream);
  void accept(Delivery& delivery, Operation operation, std::span<std::byte> data);
  void hold(Delivery& delivery);
  void refuse(Delivery& delivery, Operation operation, std::size_t size);
  void begin(Delivery& delivery, unsigned stripe);
  void resume(Delivery& delivery, unsigned stripe);
  void ask(Delivery& delivery, unsigned stripe);
  void post_early(Delivery& delivery, unsigned stripe);
  void post_receives(Delivery& delivery, unsigned stripe);
  void post(Delivery& delivery, unsigned stripe, std::uint64_t index);
  void drain(int peer, std::size_t bytes);
  void leave_channel(Delivery& delivery, unsigned stripe);
  void note_here(Delivery& delivery, unsigned stripe, std::uint64_t index);
  bool note_received(Delivery& delivery);
  void check_received(Delivery& delivery);
  void end_stripe(Delivery& delivery, unsigned stripe);
  bool settle();
  void complete(Delivery& delivery);
  void lose_root(int peer);

  // Messages to children (engine_sends.cpp).
  void on_answer(int peer, const Answer& answer);
  void on_taken(int peer, const Answer& answer);
  void on_sent(Ticket ticket);
  void on_lost(int peer);
  void add_branches(Delivery& delivery, unsigned stripe, const Tree& tree, std::span<const Recipient> list,
                    std::uint16_t own_group, int stage);
  void announce(Delivery& delivery);
  void announce(Delivery& delivery, Outgoing& outgoing);
  bool wants_answers(std::span<const Recipient> list, std::size_t bytes);
  bool may_send_early(const Delivery& delivery, const Outgoing& outgoing);
  void take_over(Delivery& delivery, Outgoing& outgoing);
  void close(Delivery& delivery, Outgoing& outgoing);
  void check_sent(Outgoing& outgoing);
  void send_segments();
  bool fits(const Peer& peer, std::size_t bytes) const;
  bool make_room();
  void set_apart(Peer& peer);
  void refresh(Delivery& delivery);
  void withdraw(Delivery& delivery);
  void let_through(int rank);
  void end_holds();
  double awaited_until(const Delivery& delivery, const Outgoing& outgoing);
  void send_segment(Delivery& delivery, Outgoing& outgoing);
  std::vector<Announcement> inlined(const Announcement& base, std::span<const Recipient> list, std::uint16_t own_group);
  void write_inlined(std::vector<Announcement>& announcements);
  bool may_inline(std::span<const Recipient> list, std::size_t size);
  void retry();
  int slowness_of(int rank) const;
  std::vector<Recipient> recipients(std::uint32_t context, std::int64_t tag, std::span<const Destination> destinations);
  void sort(std::vector<Recipient>& list) const;
  void commit(std::uint32_t context, std::int64_t tag, std::span<const Recipient> list);
  void write(int peer, const Announcement& announcement);
  void write(int peer, const Answer& answer);

  void retire(Delivery& delivery);
  void note(Event::Kind kind, Operation operation, const Passage& passage);
  void fail(Operation operation, int rank, std::string text);
  void wake(double at);
  Ticket add_request(const Request& request);
  Request take_request(Ticket ticket);
  Peer& peer_of(int rank);
  std::size_t share() const { return settings_.pool / (2 * static_cast<std::size_t>(transport_.size())); }
  bool is_lost(int rank) const { return lost_[static_cast<std::size_t>(rank)]; }
  std::uint16_t group_of(int rank) const;

  static constexpr std::size_t kInlinedCost = 64;  // bytes of memory for inlined data besides the data

  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Stripe = std::pair<Delivery*, unsigned>;

  Transport& transport_;
  Settings settings_;
  Counters counters_;
  Observer* observer_ = nullptr;
  Operation last_operation_ = 0;
  std::size_t in_flight_ = 0;    // bytes, to ranks that take them
  std::size_t under_way_ = 0;    // bytes that the transport was asked to send and to receive
  double seconds_per_byte_ = 0;  // of the last segments that were sent
  double moved_ = 0;             // s, when one was sent last, or others were let go first
  int apart_ = 0;                // ranks that take nothing
  double wake_at_ = std::numeric_limits<double>::infinity();  // s
  std::size_t pool_used_ = 0;
  std::deque<Event> events_;
  std::vector<std::byte> buffer_;  // of the control message that is being written
  std::map<int, Peer> peers_;
  std::unordered_map<Key, std::unique_ptr<Stream>, KeyHash> streams_;  // of receives
  std::unordered_map<Key, std::uint64_t, KeyHash> sent_;               // the last serial; `root` is the recipient
  std::map<std::uint64_t, std::unique_ptr<Delivery>> deliveries_;      // in the order in which they began
  std::uint64_t last_delivery_ = 0;
  std::map<std::pair<int, std::uint64_t>, Delivery*> arrived_;  // of other roots, by root and serial
  std::map<std::pair<int, std::uint64_t>, Stripe> on_common_;   // received by the common channel, by parent and number
  std::unordered_map<Ticket, std::vector<std::byte>> early_;    // segments that came before their receive
  std::map<Place, Outgoing*> ready_;                            // what to send next of each message
  std::set<std::pair<double, std::uint64_t>> holds_;            // messages that wait for an answer, and until when
  std::vector<std::uint64_t> unannounced_;                      // messages for which memory was missing
  std::map<std::uint64_t, Announced> announced_;                // by number
  std::uint64_t last_number_ = 0;
  // The delivery of which all is here since the last step, and the stripe that came last.
  std::optional<std::pair<std::uint64_t, unsigned>> received_;
  std::vector<std::uint64_t> over_;  // deliveries to erase when nothing uses them any more
  std::vector<Request> requests_;
  std::vector<Ticket> free_requests_;
  std::vector<bool> lost_;
  std::vector<int> slowness_;  // of each rank's link: how often the fastest is twice as fast
};

}  // namespace elbowroom::broadcast
