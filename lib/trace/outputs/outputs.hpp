// The files that a merged trace can be written as; each in a source of its own.
#pragma once

#include <memory>
#include <string>

#include "trace/merge/sink.hpp"

namespace elbowroom::trace {

std::unique_ptr<Sink> perfetto_output(const std::string& path);
std::unique_ptr<Sink> chrome_output(const std::string& path);
std::unique_ptr<Sink> otf2_output(const std::string& path);  // a folder
std::unique_ptr<Sink> paje_output(const std::string& path);
std::unique_ptr<Sink> graph_output(const std::string& path);  // DOT: the graph of tasks
// The job as a JSON line, then blocks of ColumnRecord: what Parquet and the HTML timeline are made of. "-": stdout.
std::unique_ptr<Sink> columns_output(const std::string& path);

}  // namespace elbowroom::trace
