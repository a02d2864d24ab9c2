//! The harness and the conformance tests of the partner API.
