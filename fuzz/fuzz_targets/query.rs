//! Any query of a URL of the console: it is read, or a field is named with what is expected, and each
//! link of a page leads to the same filters.
//!
//! Input: the query. The modules are the command line's own, which is a program and no library.

#![no_main]
#![expect(dead_code, reason = "what the rest of the page uses")]

mod console;
#[path = "../../crates/cli/src/operations/filter_args.rs"]
mod filter_args;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|form: &[u8]| console::check(form));

/// Errors of commands, without their exit code.
mod files {
    pub(crate) fn usage_error(problem: impl Into<String>) -> anyhow::Error {
        anyhow::Error::msg(problem.into())
    }
}

/// Words of a command, which are not looked at.
mod shell {
    pub(crate) fn typed(text: &str) -> String {
        text.to_owned()
    }
}

/// Moments, which are not looked at.
mod text {
    pub(crate) fn at(time_ms: Option<u64>) -> String {
        format!("{time_ms:?}")
    }
}
