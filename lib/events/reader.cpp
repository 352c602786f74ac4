#include "events/reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <regex>

#include "events/json_text.hpp"

namespace elbowroom::events {

namespace dom = simdjson::dom;

namespace {

constexpr std::size_t kLargestHead = std::size_t{64} << 20;  // bytes in front of the events
constexpr std::size_t kLargestTail = std::size_t{16} << 20;
constexpr std::size_t kLargestWindow = std::size_t{64} << 20;
constexpr std::size_t kLook = std::size_t{1} << 16;  // bytes at a window's end in which it is cut
constexpr int kTries = 64;
constexpr std::size_t kMostClasses = 4096;  // from there on all steps are one class: a long trace has millions
constexpr std::string_view kSpace = " \t\r\n,";

// Whether it is this word: with a size that the compiler knows, a comparison takes no call.
template <std::size_t Size>
bool is(std::string_view text, const char (&word)[Size]) {
  return text.size() == Size - 1 && std::memcmp(text.data(), word, Size - 1) == 0;
}

// The value as JSON; `absent` where there is none.
std::string text_of(const Value& value, const char* absent) {
  return value ? std::string(simdjson::minify(*value)) : absent;
}

bool has_number(dom::element value, double& number) {
  if (value.get_double().get(number) == simdjson::SUCCESS) {
    return true;
  }
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::int64_t whole_number(dom::element value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t number = kNone;
  return value.get_int64().get(number) == simdjson::SUCCESS && number >= 0 && number < kMost ? number : kNone;
}

// What is read of `args`.
struct Arguments {
  Value stream, grid, block, shared, dims, name, labels, sort_index;
  bool device = false;
  bool collective = false;
  bool given = false;
  std::int64_t correlation = kNone;
  std::int64_t external = kNone;
};

Arguments arguments_of(dom::object object) {
  Arguments found;
  found.given = true;
  for (const auto [key, value] : object) {
    switch (key.size()) {  // most keys are none of these
      case 4:
        if (is(key, "grid")) {
          found.grid = value;
        } else if (is(key, "name")) {
          found.name = value;
        }
        break;
      case 5:
        if (is(key, "block")) {
          found.block = value;
        }
        break;
      case 6:
        if (is(key, "stream")) {
          found.stream = value;
        } else if (is(key, "device")) {
          found.device = whole_number(value) >= 0;
        } else if (is(key, "labels")) {
          found.labels = value;
        }
        break;
      case 10:
        if (is(key, "Input Dims")) {
          found.dims = value;
        } else if (is(key, "sort_index")) {
          found.sort_index = value;
        }
        break;
      case 11:
        if (is(key, "correlation")) {
          found.correlation = whole_number(value);
        } else if (is(key, "External id")) {
          found.external = whole_number(value);
        }
        break;
      case 13:
        if (is(key, "shared memory")) {
          found.shared = value;
        }
        break;
      case 15:
        if (is(key, "Collective name")) {
          found.collective = !value.is_null();
        }
        break;
      default: break;
    }
  }
  return found;
}

// Appends a value to what classes and lanes are looked up by: two are alike if their bytes are.
void append(std::string& key, const Value& value) {
  const auto append_type = [&key](char type, std::uint64_t number) {
    char bytes[1 + sizeof number] = {type};
    std::memcpy(bytes + 1, &number, sizeof number);
    key.append(bytes, sizeof bytes);
  };
  if (!value) {
    key += '-';
    return;
  }
  switch (value->type()) {
    case dom::element_type::STRING: {
      const std::string_view text = value->get_string();
      append_type('s', text.size());
      key += text;
      break;
    }
    case dom::element_type::INT64:
      append_type('i', static_cast<std::uint64_t>(std::int64_t{value->get_int64()}));
      break;
    case dom::element_type::ARRAY:
      key += '[';
      for (const dom::element one : value->get_array()) {
        append(key, one);
      }
      key += ']';
      break;
    default: (key += 'j') += text_of(value, "");
  }
}

}  // namespace

template <typename Find>
std::int32_t RecentLanes::number(const Value& process, const Value& thread, const Value& stream, const Find& find) {
  Lane lane{0, 0, kNone, 0};
  const bool numbers = process && process->get_int64().get(lane.process) == simdjson::SUCCESS && thread &&
                       thread->get_int64().get(lane.thread) == simdjson::SUCCESS &&
                       (!stream || (stream->get_int64().get(lane.stream) == simdjson::SUCCESS && lane.stream >= 0));
  if (!numbers) {
    return find();
  }
  const std::uint64_t mixed = 31 * static_cast<std::uint64_t>(lane.process) +
                              7 * static_cast<std::uint64_t>(lane.thread) + static_cast<std::uint64_t>(lane.stream);
  Lane& known = lanes_[mixed % lanes_.size()];
  if (known.process != lane.process || known.thread != lane.thread || known.stream != lane.stream || known.number < 0) {
    lane.number = find();
    known = lane;
  }
  return known.number;
}

namespace {

// Behind the ] of the array with which the text begins; 0: it has none.
std::size_t array_end(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at) {
          at += text[at] == '\\';
        }
        break;
      case '[':
      case '{': ++depth; break;
      case ']':
      case '}':
        if (--depth == 0) {
          return at + 1;
        }
        break;
      default: break;
    }
  }
  return 0;
}

// Where the number of a step begins in a name ("ProfilerStep#12", "iteration 7"); npos: it names none.
std::size_t step_number(std::string_view name) {
  std::size_t end = name.size();
  std::size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') {
    --begin;
  }
  if (begin == end) {
    return std::string_view::npos;
  }
  end = begin;
  while (end > 0 && (name[end - 1] == '#' || name[end - 1] == ' ' || name[end - 1] == '_' || name[end - 1] == ':')) {
    --end;
  }
  for (const std::string_view word : {"step", "iter", "iteration"}) {
    if (end > word.size() && std::equal(word.begin(), word.end(), name.begin() + static_cast<long>(end - word.size()),
                                        [](char one, char other) { return one == (other | 0x20); })) {
      return begin;
    }
  }
  return std::string_view::npos;
}

}  // namespace

void Reader::run() {
  try {
    find_events();
    while (take_window()) {
    }
  } catch (const simdjson::simdjson_error& error) {
    throw Declined(error.what());
  }
  close();
}

// Leaves the buffer with what follows the [ of the events, and that bracket.
void Reader::find_events() {
  static const std::regex array(R"("traceEvents"\s*:\s*\[)");
  source_.append_to(buffer_);
  const std::size_t start = buffer_.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (start == std::string::npos || (buffer_[start] != '[' && buffer_[start] != '{')) {
    throw Declined("no JSON");
  }
  if (buffer_[start] == '[') {
    forget(start);
    return;
  }
  std::size_t from = 0;
  while (true) {
    const std::size_t name = buffer_.find("\"traceEvents\"", from);
    if (name != std::string::npos) {
      std::smatch match;
      const auto begin = buffer_.cbegin() + static_cast<std::ptrdiff_t>(name);
      if (std::regex_search(begin, begin + std::min<std::ptrdiff_t>(64, buffer_.cend() - begin), match, array,
                            std::regex_constants::match_continuous)) {
        head_ = buffer_.substr(0, name);
        forget(name + static_cast<std::size_t>(match.length()) - 1);
        return;
      }
      from = name + 1;
      continue;
    }
    from = buffer_.size() > 16 ? buffer_.size() - 16 : 0;
    if (buffer_.size() > kLargestHead || !source_.append_to(buffer_)) {
      throw Declined("no array traceEvents");
    }
  }
}

// One window of events; false at the end of the array.
bool Reader::take_window() {
  const bool more = source_.append_to(buffer_);
  std::size_t place = buffer_.size();
  for (int tries = more ? kTries : 0; tries > 0; --tries) {
    // Between two events: a } that a comma and a { follow.
    const std::size_t least = buffer_.size() > kLook ? buffer_.size() - kLook : 1;
    do {
      place = place > least ? buffer_.rfind('}', place - 1) : std::string::npos;
      if (place == std::string::npos || place < least) {
        place = 0;
        break;
      }
      std::size_t next = buffer_.find_first_not_of(" \t\r\n", place + 1);
      next = next != std::string::npos && buffer_[next] == ',' ? buffer_.find_first_not_of(" \t\r\n", next + 1)
                                                               : std::string::npos;
      if (next != std::string::npos && buffer_[next] == '{') {
        break;
      }
    } while (true);
    if (place == 0) {
      break;
    }
    if (parse(place + 1) || (tries == kTries && replace_words(buffer_.size()) && parse(place + 1))) {
      commit();
      begun_ = true;
      forget(next_event(place + 1) - 1);
      buffer_[0] = '[';
      return true;
    }
  }
  if (more && buffer_.size() < kLargestWindow) {
    return true;
  }
  const std::size_t end = array_end(buffer_);
  if (end != 0 && (parse(end) || (replace_words(end) && parse(end)))) {
    commit();
    tail_ = buffer_.substr(end);
    offset_ += end;
    return false;
  }
  if (!begun_) {
    throw Declined("ends early, or is damaged");
  }
  const std::size_t good = take_until_damage();
  if (!source_.doubt().empty()) {
    doubt_ = source_.doubt();
  } else if (more || buffer_.size() - good > kLook) {
    doubt_ = "is damaged from byte " + std::to_string(offset_ + next_event(std::max<std::size_t>(good, 1))) + " on";
  } else {
    doubt_ = "ends early";
  }
  return false;
}

void Reader::forget(std::size_t length) {
  buffer_.erase(0, length);
  offset_ += length;
}

// Where the next event begins, from a place on.
std::size_t Reader::next_event(std::size_t from) const {
  return std::min(buffer_.find_first_not_of(kSpace, from), buffer_.size());
}

// NaN and Infinity, which are no JSON, become texts: what they are of has no number. Whether there were some.
bool Reader::replace_words(std::size_t length) {
  bool found = false;
  for (std::size_t at = 0; at < length; ++at) {
    if (buffer_[at] == '"') {
      for (++at; at < length && buffer_[at] != '"'; ++at) {
        at += buffer_[at] == '\\';
      }
      continue;
    }
    for (const std::string_view word : {"NaN", "-NaN", "Infinity", "-Infinity"}) {
      if (buffer_[at] == word[0] && buffer_.compare(at, word.size(), word) == 0) {
        buffer_.replace(at, word.size(), "\"\"" + std::string(word.size() - 2, ' '));
        found = true;
        break;
      }
    }
  }
  return found;
}

// Commits the events in front of the first one that cannot be read: the longest beginning that can be. Its length.
std::size_t Reader::take_until_damage() {
  std::vector<std::size_t> places;  // behind the } of an event, or of an object inside one
  for (std::size_t at = buffer_.find('}'); at != std::string::npos; at = buffer_.find('}', at + 1)) {
    const std::size_t next = buffer_.find_first_not_of(kSpace, at + 1);
    if (next == std::string::npos || buffer_[next] == '{') {
      places.push_back(at + 1);
    }
  }
  std::size_t good = 0, bad = places.size();
  while (good < bad) {
    const std::size_t middle = good + (bad - good) / 2;
    // A cut inside an event says nothing: one of the next ones is between two.
    std::size_t last = middle;
    while (last < std::min(bad, middle + kTries) && !parse(places[last])) {
      ++last;
    }
    if (last < std::min(bad, middle + kTries)) {
      good = last + 1;
    } else {
      bad = middle;
    }
  }
  if (good == 0 || !parse(places[good - 1])) {
    return 0;
  }
  commit();
  return places[good - 1];
}

// Reads the window's first `length` bytes, for `commit`; false if they are no array of events.
bool Reader::parse(std::size_t length) {
  buffer_.reserve(buffer_.size() + 1 + simdjson::SIMDJSON_PADDING);
  // The bracket that closes the window's array takes the place of what follows, for as long as it is read.
  const bool closed = buffer_[length - 1] == ']';
  const char after = length < buffer_.size() ? buffer_[length] : ' ';
  if (!closed) {
    buffer_.resize(std::max(buffer_.size(), length + 1));
    buffer_[length] = ']';
  }
  dom::array events;
  const bool right = parser_.parse(buffer_.data(), length + (closed ? 0 : 1), false).get(events) == simdjson::SUCCESS &&
                     std::all_of(events.begin(), events.end(), [](dom::element one) { return one.is_object(); });
  if (!closed) {
    buffer_[length] = after;
  }
  return right;
}

RawEvent Reader::event(dom::object object) {
  RawEvent event;
  Value name, category, process, thread, id, scope;
  Arguments arguments;
  for (const auto [key, value] : object) {
    switch (key.size()) {
      case 2:
        if (is(key, "ph")) {
          std::string_view text;
          event.phase = value.get_string().get(text) == simdjson::SUCCESS && text.size() == 1 ? text[0] : '?';
        } else if (is(key, "ts")) {
          event.has_start = has_number(value, event.start);
        } else if (is(key, "id")) {
          id = value;
        }
        break;
      case 3:
        if (is(key, "cat")) {
          category = value;
        } else if (is(key, "pid")) {
          process = value;
        } else if (is(key, "tid")) {
          thread = value;
        } else if (is(key, "dur")) {
          event.has_duration = has_number(value, event.duration);
        } else if (is(key, "id2")) {
          id = value;
        }
        break;
      case 4:
        if (is(key, "name")) {
          name = value;
        } else if (dom::object more; is(key, "args") && value.get_object().get(more) == simdjson::SUCCESS) {
          arguments = arguments_of(more);
        }
        break;
      case 5:
        if (is(key, "scope")) {
          scope = value;
        }
        break;
      default: break;
    }
  }
  if (event.phase == 'M') {
    if (arguments.given) {
      metadata_.push_back(
          list({text_of(process, "0"), text_of(thread, "0"), text_of(name, "\"\""), text_of(arguments.name, "null"),
                text_of(arguments.labels, "null"), text_of(arguments.sort_index, "null")}));
    }
    return event;
  }
  // Asynchronous events belong together by their id, and may overlap on their thread.
  const bool asynchronous = event.phase == 'b' || event.phase == 'e';
  if (asynchronous) {
    event.phase = event.phase == 'b' ? 'B' : 'E';
  }
  if (event.phase != 'X' && event.phase != 'B' && event.phase != 'E') {
    return event;
  }
  const auto keyed = [this](auto... values) -> std::string& {
    key_.clear();
    (append(key_, values), ...);
    return key_;
  };
  if (event.phase != 'X') {
    event.thread = threads_[asynchronous ? keyed(process, category, id, scope) += 'b' : keyed(process, thread)];
  }
  if (event.phase == 'E') {
    return event;
  }
  event.correlation = arguments.correlation;
  event.external = arguments.external;
  const auto new_lane = [&] {
    return lanes_.number((keyed(process, thread, arguments.stream) += asynchronous ? 'b' : 'X'), [&] {
      std::vector<std::string> texts{text_of(process, "0"), text_of(thread, "0"), text_of(arguments.stream, "null")};
      if (asynchronous) {
        texts.emplace_back("true");
      }
      return list(texts);
    });
  };
  event.lane = asynchronous ? new_lane() : recent_lanes_.number(process, thread, arguments.stream, new_lane);
  if (std::string_view text;
      !category || category->get_string().get(text) != simdjson::SUCCESS || !is(text, "cpu_op")) {
    arguments.dims.reset();
  }
  std::string_view step;
  if (classes_.texts().size() > kMostClasses && name && name->get_string().get(step) == simdjson::SUCCESS) {
    const std::size_t number = step_number(step);
    step = number == std::string_view::npos ? std::string_view{} : step.substr(0, number);
  } else {
    step = {};
  }
  merged_ = merged_ || !step.empty();
  keyed(step.empty() ? name : Value{}, category, process, arguments.dims, arguments.grid, arguments.block,
        arguments.shared) += step;
  key_ += arguments.device ? 'd' : '-';
  key_ += arguments.collective ? 'c' : '-';
  event.kind = classes_.number(key_, [&] {
    return list({step.empty() ? text_of(name, "\"\"") : in_quotes(std::string(step) + "0"), text_of(category, "\"\""),
                 arguments.device ? "true" : "false", arguments.collective ? "true" : "false", text_of(process, "0"),
                 in_quotes(text_of(arguments.dims, "")), in_quotes(text_of(arguments.grid, "")),
                 in_quotes(text_of(arguments.block, "")), in_quotes(text_of(arguments.shared, ""))});
  });
  return event;
}

// The window is whole: its events count.
void Reader::commit() {
  for (const dom::object object : dom::array(parser_.doc.root().get_array())) {
    const RawEvent event = this->event(object);
    RawEvent whole = event;
    if (event.phase == 'B') {
      open_.begin(event);
    } else if (event.phase == 'E' ? open_.end(event, whole) : event.phase == 'X') {
      if (event.phase == 'X' && !(event.has_start && event.has_duration)) {
        ++timeless_;
      } else {
        columns_.add(whole);
      }
      if (columns_.size() == Columns::kBlock) {
        columns_.write(out_);
      }
    }
  }
}

void Reader::close() {
  while (doubt_.empty() && tail_.size() < kLargestTail && source_.append_to(tail_)) {
  }
  if (!source_.doubt().empty() && doubt_.empty()) {
    if (!begun_) {
      throw Declined(source_.doubt());
    }
    doubt_ = source_.doubt();
  }
  if (columns_.size() > 0) {
    columns_.write(out_);
  }
  columns_.write(out_);
  const std::string text = "{\"classes\":" + list(classes_.texts()) + ",\"lanes\":" + list(lanes_.texts()) +
                           ",\"pairs\":" + columns_.pairs() + ",\"metadata\":" + list(metadata_) +
                           ",\"timeless\":" + std::to_string(timeless_) +
                           ",\"waiting\":" + std::to_string(open_.waiting()) +
                           ",\"merged\":" + (merged_ ? "true" : "false") + ",\"head\":" + in_quotes(head_) +
                           ",\"tail\":" + in_quotes(tail_) + ",\"tail_at\":" + std::to_string(offset_) +
                           ",\"doubt\":" + in_quotes(doubt_) + "}";
  write_all(out_, text.data(), text.size());
}

}  // namespace elbowroom::events
