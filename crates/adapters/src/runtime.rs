//! What a function runs on: one thread, which writes its log while it has nothing to do but wait.
//!
//! One thread, because a function below 1,769 MB has less than one CPU, and its work is waiting.
//! <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
//!
//! A line of the log is held until the thread would wait, for answers or for work, and then leaves with all that came
//! since: a call of the system for every line took a tenth of an event's time. So whoever ends us while we wait finds
//! every line written, and whoever ends us while we work loses those of the last few milliseconds.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;

use crate::lines;

/// Runs a function to its end.
///
/// # Errors
/// When the system gives no runtime.
pub fn run<T>(function: impl Future<Output = T>) -> io::Result<T> {
    let ended = Builder::new_current_thread().enable_all().on_thread_park(lines::flush).build()?.block_on(function);
    lines::flush();
    Ok(ended)
}
