#include "protocol/worker_cache.hpp"

#include <algorithm>
#include <iterator>

namespace elbowroom {
namespace {

bool among(const WorkerKey& key, const std::vector<WorkerKey>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::size_t WorkerCache::bytes_on(int node) const {
  std::size_t bytes = 0;
  for (const CachedWorker& worker : workers_) {
    bytes += worker.arena.node() == node ? worker.arena.size() : 0;
  }
  return bytes;
}

CachedWorker* WorkerCache::find(const WorkerKey& key) {
  const auto it = std::find_if(workers_.begin(), workers_.end(), [&](const CachedWorker& w) { return w.key == key; });
  if (it == workers_.end()) {
    return nullptr;
  }
  workers_.splice(workers_.begin(), workers_, it);
  return &workers_.front();
}

void WorkerCache::make_room(std::size_t bytes, int node, const std::vector<WorkerKey>& wanted) {
  for (auto it = workers_.end(); it != workers_.begin() && bytes_on(node) + bytes > cap_;) {
    --it;
    if (it->arena.node() == node && !among(it->key, wanted)) {
      it = workers_.erase(it);
    }
  }
}

// Pages that a thread of the same core has touched are worth keeping: when there is no room for more, the memory of the
// worker unused for longest is taken over.
Arena WorkerCache::memory_for(const WorkerKey& key, const std::vector<WorkerKey>& wanted) {
  if (bytes_on(key.node) + key.bytes > cap_) {
    for (auto it = workers_.rbegin(); it != workers_.rend(); ++it) {
      if (it->key.core == key.core && it->arena.node() == key.node && it->arena.size() >= key.bytes &&
          !among(it->key, wanted)) {
        Arena arena = std::move(it->arena);
        workers_.erase(std::next(it).base());
        return arena;
      }
    }
  }
  make_room(key.bytes, key.node, wanted);
  return Arena(key.bytes, key.node);
}

std::vector<CachedWorker*> WorkerCache::get(const std::vector<WorkerKey>& keys, ComputingPool& pool) {
  std::vector<CachedWorker*> result;
  std::vector<bool> fresh;
  for (const WorkerKey& key : keys) {
    CachedWorker* worker = find(key);
    fresh.push_back(worker == nullptr);
    if (worker == nullptr) {
      Arena arena = key.bytes > 0 ? memory_for(key, keys) : Arena();
      ComputingJob job{make_worker(key.kernel, arena.data(), key.bytes, key.cursor)};
      workers_.push_front({key, std::move(arena), std::move(job)});
      worker = &workers_.front();
    }
    result.push_back(worker);
  }
  try {
    pool.each([&](std::size_t i) {
      if (fresh[i]) {
        result[i]->job.worker->first_touch();
      }
    });
  } catch (...) {  // half touched workers must not be found again
    for (std::size_t i = 0; i < keys.size(); ++i) {
      workers_.remove_if([&](const CachedWorker& worker) { return fresh[i] && worker.key == keys[i]; });
    }
    throw;
  }
  return result;
}

}  // namespace elbowroom
