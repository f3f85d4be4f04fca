//! Runs a function on one thread, which writes its log whenever it would otherwise wait.
//!
//! One thread is enough, because a function below 1,769 MB has less than one CPU, and mostly waits.
//! <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
//!
//! Log lines are buffered until the thread would wait for responses or work, and then written
//! together: a system call costs more than formatting a line. Warnings and errors are written at
//! once. Therefore a process that is killed while it waits has written every line. A process that
//! is killed while it works loses at most 16 KiB of `info` lines.

use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::runtime::Builder;

use crate::{json_log, telemetry};

/// Runs a function on this thread until it ends, and returns its result.
///
/// # Errors
/// Fails if the runtime cannot be started.
pub fn run<T>(function: impl Future<Output = T>) -> io::Result<T> {
    let ended = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(json_log::flush)
        .build()?
        .block_on(function);
    // Flush here, because the thread does not park again after the end of the future.
    json_log::flush();
    Ok(ended)
}

/// Runs `work`; a panic becomes `None` and is logged.
pub fn contained<T>(task: &str, work: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    // Not an async function, whose future would contain the work twice.
    AssertUnwindSafe(work)
        .catch_unwind()
        .map(move |ended| ended.inspect_err(|_| telemetry::panicked(task)).ok())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The variable with the task of the process that a test starts.
    const TASK: &str = "TASK_OF_THE_FUNCTION";
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Runs in the process that the other test starts. Without a task, does nothing.
    #[test]
    fn function() {
        let Ok(task) = std::env::var(TASK) else { return };
        telemetry::log_json();
        let work = async {
            tracing::info!("work.begun");
            match task.as_str() {
                "wait" => std::future::pending().await,
                "panic" => panic!("as asked"),
                "warn and spin" => {
                    tracing::warn!("work.odd");
                    loop {
                        std::hint::spin_loop();
                    }
                }
                _ => {}
            }
        };
        run(work).expect("a runtime");
    }

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Returns true if a process with this task writes a line with this message before the timeout.
    fn writes(task: &str, message: &str) -> bool {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", "--nocapture", "runtime::tests::function"])
            .env(TASK, task)
            .env_remove("RUST_LOG");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Killed(command.spawn().expect("this test again"));
        let output = BufReader::new(process.0.stdout.take().expect("it is piped"));
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let lines = std::iter::from_fn(|| receiver.recv_timeout(TIMEOUT).ok());
        lines.into_iter().any(|line| line.contains(&format!("\"message\":\"{message}\"")))
    }

    #[test]
    fn a_line_is_written_when_the_function_waits_warns_panics_or_ends() {
        assert!(writes("wait", "work.begun"));
        assert!(writes("warn and spin", "work.begun") && writes("warn and spin", "work.odd"));
        assert!(writes("panic", "work.begun") && writes("panic", "panic.raised"));
        assert!(writes("end", "work.begun"));
        assert!(!writes("end", "work.odd"), "a message that nobody logged is not written");
    }
}
