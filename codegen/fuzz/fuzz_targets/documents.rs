//! Whatever a document says, the generator answers: nothing panics, overflows its stack or goes on without end, and what it
//! generates parses.

#![no_main]

use std::panic;
use std::path::Path;

use codegen::{Problem, emit, load, refusals};
use libfuzzer_sys::fuzz_target;

// libFuzzer's own hook would end the process where the generator catches a panic: progenitor asserts what it cannot do.
fuzz_target!(init: panic::set_hook(Box::new(|_| ())), |text: &str| {
    // Files beside the corpus are nobody's.
    if text.contains("$ref") && (text.contains(".yaml") || text.contains(".json")) {
        return;
    }
    let text = text.to_string();
    let worker = std::thread::Builder::new().stack_size(codegen::STACK).spawn(move || run(&text));
    if let Ok(worker) = worker
        && worker.join().is_err()
    {
        std::process::abort();
    }
});

fn run(text: &str) {
    let Ok(document) = load::from_text(Path::new("a"), text) else {
        return;
    };
    drop(refusals::groups(refusals::all(&document)));
    let rest = match codegen::model(&document) {
        Ok(_) => document,
        Err(_) => match refusals::skipping(&document) {
            Ok((rest, _)) => rest,
            Err(_) => return,
        },
    };
    let api = codegen::model(&rest).expect("skipping leaves no refusal");
    let root = emit::Root::default();
    emit::server(&api, &root, emit::Dispatch::Dropshot).expect("what is not refused is generated");
    if let Err(problem @ Problem::Defect { .. }) = emit::client(&rest, &api, &root) {
        panic!("{problem}");
    }
}
