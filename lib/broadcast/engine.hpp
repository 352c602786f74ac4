// The broadcasts of one rank (Swartvagher 2022, section 4.2.2): a state machine over a transport. Data reach a rank from the
// root or through other ranks, and a receive cannot tell. One thread uses an engine.
//
// Small data travel inside announcements. For larger ones, a rank announces them to its children, each child answers when it
// has a buffer, and segments follow; a rank forwards a segment as soon as it has it (cut-through). A child that has no
// buffer yet is bypassed: its parent serves the children below it, so that a receive that is posted late delays nobody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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
  std::size_t window = 128 << 10;   // bytes in flight from this rank: two segments of 64 KiB
  double patience = 20e-6;          // s that a child may take at least to answer before later ones are served
  std::size_t posted = 4;           // receives of segments that are posted ahead
  Late late = Late::kStoreForward;
  std::size_t pool = 16 << 20;        // bytes for kStoreForward
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
    kLost,      // `rank` is gone; the operation goes on with the others
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
  std::uint32_t sequence = 0;
  double seconds = 0;
  std::vector<int> ranks;  // that it waits for
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

  // What has not moved for `seconds`, with the ranks it waits for.
  std::vector<Stall> stalls(double seconds);

  const Counters& counters() const { return counters_; }
  // Whether nothing is under way here: all operations are over, and nothing is stored or forwarded.
  bool idle() const;
  std::size_t pool_used() const { return pool_used_; }

 private:
  struct Delivery;
  struct Outgoing;
  struct Incoming;
  struct Stream;
  struct Request;
  struct Channel;

  // Messages that arrive (engine_receives.cpp).
  Stream& stream_of(const Key& key);
  void erase_finished();
  void on_message(int peer, std::span<const std::byte> bytes);
  void on_announcement(int peer, Announcement& announcement);
  void on_inlined(const Announcement& announcement);
  void on_received(Ticket ticket);
  Delivery& add_delivery(const Announcement& announcement);
  void attach(Delivery& delivery, int peer, Announcement& announcement);
  void match(Stream& stream, Delivery& delivery);
  void accept(Delivery& delivery, Operation operation, std::span<std::byte> data);
  void hold(Delivery& delivery);
  void refuse(Delivery& delivery, Operation operation, std::size_t size);
  void begin(Delivery& delivery, unsigned stripe);
  void resume(Delivery& delivery, unsigned stripe);
  void post_receives(Delivery& delivery, unsigned stripe);
  void check_received(Delivery& delivery);
  void complete(Delivery& delivery);

  // Messages to children (engine_sends.cpp).
  void on_answer(int peer, const Answer& answer);
  void on_sent(Ticket ticket);
  void on_lost(int peer);
  void add_branches(Delivery& delivery, unsigned stripe, const Tree& tree, std::span<const Recipient> list,
                    std::uint16_t own_group, int stage);
  void announce(Delivery& delivery);
  void announce(Delivery& delivery, Outgoing& outgoing);
  void take_over(Delivery& delivery, Outgoing& outgoing);
  void close(Delivery& delivery, Outgoing& outgoing);
  void send_segments();
  std::pair<Delivery*, Outgoing*> next_to_send();
  bool is_awaited(const Delivery& delivery, const Outgoing& outgoing);
  void send_segment(Delivery& delivery, Outgoing& outgoing);
  void send_inlined(const Announcement& base, std::span<const Recipient> list, std::uint16_t own_group);
  int slowness_of(int rank) const;
  std::vector<Recipient> recipients(std::uint32_t context, std::int64_t tag, std::span<const Destination> destinations);
  void write(int peer, const Announcement& announcement);
  void write(int peer, const Answer& answer);

  void retire(Delivery& delivery);
  void note(Event::Kind kind, Operation operation, const Passage& passage);
  void fail(Operation operation, int rank, std::string text);
  Ticket add_request(const Request& request);
  Request take_request(Ticket ticket);
  std::uint16_t group_of(int rank) const;

  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Transport& transport_;
  Settings settings_;
  Counters counters_;
  Observer* observer_ = nullptr;
  Operation last_operation_ = 0;
  std::size_t in_flight_ = 0;    // bytes
  double seconds_per_byte_ = 0;  // of the last segment that was sent
  std::size_t pool_used_ = 0;
  std::deque<Event> events_;
  std::vector<std::byte> buffer_;                                      // of the control message that is being written
  std::unordered_map<Key, std::unique_ptr<Stream>, KeyHash> streams_;  // of receives
  std::unordered_map<Key, std::uint32_t, KeyHash> sent_;               // sequence numbers; `root` is the recipient
  std::map<std::uint64_t, std::unique_ptr<Delivery>> deliveries_;      // in the order in which they began
  std::uint64_t last_delivery_ = 0;
  std::vector<std::uint64_t> over_;  // deliveries to erase when nothing uses them any more
  std::vector<Request> requests_;
  std::vector<Ticket> free_requests_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> free_channels_;
  bool channel_wanted_ = false;  // children wait for a channel
  std::vector<bool> lost_;
  std::vector<int> slowness_;  // of each rank's link: how often the fastest is twice as fast
};

}  // namespace elbowroom::broadcast
