#include "events/reader.hpp"

#include <algorithm>
#include <charconv>
#include <regex>

#include "events/json_text.hpp"

namespace elbowroom::events {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kLargestHead = std::size_t{64} << 20;  // bytes in front of the events
constexpr std::size_t kLargestTail = std::size_t{16} << 20;
constexpr std::size_t kLargestWindow = 16 * Source::kBlock;
constexpr std::size_t kLook = std::size_t{1} << 16;  // bytes at a window's end in which it is cut
constexpr int kTries = 64;
constexpr std::size_t kMostClasses = 4096;  // from there on all steps are one class: a long trace has millions
constexpr std::string_view kSpace = " \t\r\n,";

std::string_view trimmed(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return end == std::string_view::npos ? std::string_view{} : text.substr(0, end + 1);
}

// The value's own text: what one profiler writes always the same.
std::string_view text_of(ondemand::value value) {
  switch (value.type()) {
    case ondemand::json_type::array: return value.get_array().value().raw_json();
    case ondemand::json_type::object: return value.get_object().value().raw_json();
    default: {
      const std::string_view text = trimmed(value.raw_json_token());
      if (value.type() == ondemand::json_type::string) {
        (void)value.get_string().value();  // passes it, and checks it
      }
      return text;
    }
  }
}

bool has_number(ondemand::value value, double& number) {
  if (value.type() == ondemand::json_type::number) {
    number = value.get_double();
    return true;
  }
  if (value.type() != ondemand::json_type::string) {
    return false;
  }
  const std::string_view text = value.get_string();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::int64_t whole_number(ondemand::value value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t number = kNone;
  const bool whole = value.type() == ondemand::json_type::number && value.get_int64().get(number) == simdjson::SUCCESS;
  return whole && number >= 0 && number < kMost ? number : kNone;
}

// What is read of `args`, each as it stands there; empty: not there, or null.
struct Arguments {
  std::string_view stream, grid, dims, name, labels, sort_index;
  bool device = false;
  bool collective = false;
  bool given = false;
  std::int64_t correlation = kNone;
  std::int64_t external = kNone;
};

std::string_view unless_null(ondemand::value value) {
  const std::string_view text = text_of(value);
  return text == "null" ? std::string_view{} : text;
}

Arguments arguments_of(ondemand::object object) {
  Arguments found;
  found.given = true;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value value = field.value();
    switch (key.size()) {
      case 4:
        if (key == "grid") {
          found.grid = text_of(value);
        } else if (key == "name") {
          found.name = unless_null(value);
        }
        break;
      case 6:
        if (key == "stream") {
          found.stream = unless_null(value);
        } else if (key == "device") {
          found.device = whole_number(value) >= 0;
        } else if (key == "labels") {
          found.labels = unless_null(value);
        }
        break;
      case 10:
        if (key == "Input Dims") {
          found.dims = text_of(value);
        } else if (key == "sort_index") {
          found.sort_index = unless_null(value);
        }
        break;
      case 11:
        if (key == "correlation") {
          found.correlation = whole_number(value);
        } else if (key == "External id") {
          found.external = whole_number(value);
        }
        break;
      case 15:
        if (key == "Collective name") {
          found.collective = text_of(value) != "null";
        }
        break;
      default: break;
    }
  }
  return found;
}

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

// Where the number of a step begins in a name, as it stands there ("ProfilerStep#12", "iteration 7"); npos: it names none.
std::size_t step_number(std::string_view name) {
  std::size_t end = name.size() > 2 ? name.size() - 1 : 0;
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

std::string_view otherwise(std::string_view text, std::string_view fallback) { return text.empty() ? fallback : text; }

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
    buffer_.erase(0, start);
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
        buffer_.erase(0, name + static_cast<std::size_t>(match.length()) - 1);
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
      const std::size_t rest = buffer_.find_first_not_of(kSpace, place + 1);
      buffer_.replace(0, rest == std::string::npos ? buffer_.size() : rest, "[");
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
    return false;
  }
  if (!begun_) {
    throw Declined("ends early, or is damaged");
  }
  const std::size_t lost = buffer_.size() - take_until_damage();
  doubt_ = !source_.doubt().empty() ? source_.doubt() : more || lost > kLook ? "is damaged" : "ends early";
  return false;
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

// Reads the window's first `length` bytes into `window_`; false if they are no array of events.
bool Reader::parse(std::size_t length) {
  window_.clear();
  window_metadata_.clear();
  buffer_.reserve(buffer_.size() + 1 + simdjson::SIMDJSON_PADDING);
  // The bracket that closes the window's array takes the place of what follows, for as long as it is read.
  const bool closed = buffer_[length - 1] == ']';
  const char after = length < buffer_.size() ? buffer_[length] : ' ';
  if (!closed) {
    buffer_.resize(std::max(buffer_.size(), length + 1));
    buffer_[length] = ']';
  }
  const std::size_t size = length + (closed ? 0 : 1);
  bool right = true;
  try {
    // What is passed over below is not looked at there.
    (void)checker_.parse(buffer_.data(), size, false).value();
    ondemand::document document = parser_.iterate(buffer_.data(), size, buffer_.capacity());
    for (auto element : document.get_array()) {
      window_.push_back(event(element.get_object()));
    }
  } catch (const simdjson::simdjson_error&) {
    right = false;
  }
  if (!closed) {
    buffer_[length] = after;
  }
  return right;
}

RawEvent Reader::event(ondemand::object object) {
  RawEvent event;
  std::string_view name, category, process, thread, id, scope;
  Arguments arguments;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value value = field.value();
    if (key.size() > 5) {
      continue;
    }
    if (key == "ph") {
      const std::string_view text = text_of(value);
      event.phase = text.size() == 3 ? text[1] : '?';
    } else if (key == "name") {
      name = text_of(value);
    } else if (key == "cat") {
      category = text_of(value);
    } else if (key == "pid") {
      process = text_of(value);
    } else if (key == "tid") {
      thread = text_of(value);
    } else if (key == "id" || key == "id2") {
      id = text_of(value);
    } else if (key == "scope") {
      scope = text_of(value);
    } else if (key == "ts") {
      event.has_start = has_number(value, event.start);
    } else if (key == "dur") {
      event.has_duration = has_number(value, event.duration);
    } else if (key == "args" && value.type() == ondemand::json_type::object) {
      arguments = arguments_of(value.get_object());
    }
  }
  process = otherwise(process, "0");
  const auto joined = [](auto... parts) {
    std::string text;
    ((text += text.empty() ? "[" : ",", text += parts), ...);
    return text + "]";
  };
  if (event.phase == 'M') {
    if (arguments.given) {
      window_metadata_.push_back(joined(process, otherwise(thread, "0"), otherwise(name, "\"\""),
                                        otherwise(arguments.name, "null"), otherwise(arguments.labels, "null"),
                                        otherwise(arguments.sort_index, "null")));
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
  thread = otherwise(thread, "0");
  if (event.phase != 'X') {
    event.thread =
        threads_[asynchronous ? joined(process, category, otherwise(id, "null"), scope, "b") : joined(process, thread)];
  }
  if (event.phase != 'E') {
    const bool shaped = category == "\"cpu_op\"";
    std::string numberless;
    if (const std::size_t number = classes_.texts().size() > kMostClasses ? step_number(name) : std::string_view::npos;
        number != std::string_view::npos) {
      numberless.append(name.substr(0, number)).append("0\"");
      name = numberless;
      merged_ = true;
    }
    key_.assign("[");
    for (const std::string_view part :
         {otherwise(name, "\"\""), otherwise(category, "\"\""), std::string_view(arguments.device ? "true" : "false"),
          std::string_view(arguments.collective ? "true" : "false"), process}) {
      (key_ += part) += ',';
    }
    (key_ += in_quotes(shaped ? arguments.dims : std::string_view{})) += ',';
    (key_ += in_quotes(arguments.grid)) += ']';
    event.kind = classes_[key_];
    key_.assign("[");
    ((key_ += process) += ',') += thread;
    ((key_ += ',') += otherwise(arguments.stream, "null")) += asynchronous ? ",true]" : "]";
    event.lane = lanes_[key_];
    event.correlation = arguments.correlation;
    event.external = arguments.external;
  }
  return event;
}

// The window is whole: its events count.
void Reader::commit() {
  for (const RawEvent& event : window_) {
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
  metadata_.insert(metadata_.end(), window_metadata_.begin(), window_metadata_.end());
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
                           ",\"metadata\":" + list(metadata_) + ",\"timeless\":" + std::to_string(timeless_) +
                           ",\"waiting\":" + std::to_string(open_.waiting()) +
                           ",\"merged\":" + (merged_ ? "true" : "false") + ",\"head\":" + in_quotes(head_) +
                           ",\"tail\":" + in_quotes(tail_) + ",\"doubt\":" + in_quotes(doubt_) + "}";
  write_all(out_, text.data(), text.size());
}

}  // namespace elbowroom::events
