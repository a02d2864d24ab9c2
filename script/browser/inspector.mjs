// Tests of the inspectors' page, served by a sandbox. SANDBOX names its sandbox.json.
//
//   script/inspectors                           runs all tests
//   SCREENSHOTS=/tmp/pictures script/inspectors saves screenshots
//
// They run in one process, because they share the sandbox's reports. The contract's check of the requests comes at the end.

import "./inspector/session.mjs";
import "./inspector/measurements.mjs";
import "./inspector/writing.mjs";
import "./inspector/photos.mjs";
import "./inspector/publishing.mjs";
import "./inspector/views.mjs";
