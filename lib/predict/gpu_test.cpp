#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "test_document.hpp"

using namespace elbowroom::predict::test;

namespace {

elbow_predict_gpu_model* parsed_gpu(const json& file) {
  const std::string text = file.dump();
  return elbow_predict_gpu_parse(text.data(), text.size());
}

}  // namespace

TEST_CASE("a measured case is answered with its measurement, another one by the law") {
  elbow_predict_gpu_model* gpu = parsed_gpu(document());
  REQUIRE(gpu != nullptr);
  CHECK(elbow_predict_gpu_sms(gpu) == 132);
  elbow_predict_gpu_case asked = {sizeof(elbow_predict_gpu_case),
                                  ELBOW_PREDICT_GPU_GEMM,
                                  ELBOW_PREDICT_GPU_SM_IDLE,
                                  ELBOW_PREDICT_GPU_NOWHERE,
                                  8,
                                  -1,
                                  0,
                                  0.0,
                                  {}};
  auto prediction = elbowroom::c_interface::sized<elbow_predict_gpu_result>();
  REQUIRE(elbow_predict_gpu(gpu, &asked, &prediction) == 0);
  CHECK(prediction.kept.value == 0.9);
  CHECK(prediction.flags == ELBOW_PREDICT_GPU_MEASURED);
  asked.sms = 64;
  asked.victim_first = 1;
  REQUIRE(elbow_predict_gpu(gpu, &asked, &prediction) == 0);
  CHECK(prediction.kept.value < 0.9);
  CHECK(prediction.kept.low < prediction.kept.value);
  CHECK(prediction.flags == (ELBOW_PREDICT_EXTRAPOLATED | ELBOW_PREDICT_GPU_ORDER_UNKNOWN));
  elbow_predict_gpu_free(gpu);
}

TEST_CASE("a file without an accelerator, and NULL, are refused with a sentence") {
  json file = document();
  file.erase("gpu");
  errno = 0;
  CHECK(parsed_gpu(file) == nullptr);
  CHECK(errno == ENOTSUP);
  CHECK(std::string(elbow_predict_error()).find("gpu-overlap") != std::string::npos);
  CHECK(elbow_predict_gpu_parse(nullptr, 0) == nullptr);
  CHECK(elbow_predict_gpu_load(nullptr) == nullptr);
  CHECK(elbow_predict_gpu_sms(nullptr) == -1);
  auto prediction = elbowroom::c_interface::sized<elbow_predict_gpu_result>();
  CHECK(elbow_predict_gpu(nullptr, nullptr, &prediction) == -1);
  CHECK(errno == EINVAL);
  elbow_predict_gpu_free(nullptr);
}
