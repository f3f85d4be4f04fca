//! Any text as a subscription file: no panic, and every finding has a place.

#![no_main]

use dialects::{Source, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let reading = read(&[Source { name: "fuzz", text }]);
    for finding in &reading.findings {
        assert!(finding.line >= 1 && finding.column >= 1, "{finding}");
    }
});
