//! What a function runs on: one thread, which writes its log while it has nothing to do but wait.
//!
//! One thread, because a function below 1,769 MB has less than one CPU, and its work is waiting.
//! <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
//!
//! A line of the log is held until the thread would wait, for answers or for work, and then leaves
//! with all that came since: a call of the system costs more than putting a line together. Lines
//! that warn leave at once. So whoever ends us while we wait finds every line written; whoever ends
//! us while we work loses those of level `info` since the last wait, 16 KiB of them at most.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;

use crate::json_log;

/// Runs a function to its end.
///
/// # Errors
/// When the system gives no runtime.
pub fn run<T>(function: impl Future<Output = T>) -> io::Result<T> {
    let ended = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(json_log::flush)
        .build()?
        .block_on(function);
    json_log::flush();
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::telemetry;

    /// What the process that a test starts has to do.
    const TASK: &str = "TASK_OF_THE_FUNCTION";
    const PATIENCE: Duration = Duration::from_secs(60);

    /// The process that the other tests start; without a task it is a test that does nothing.
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

    /// Whether a process with this task writes a line with this message before our patience ends.
    fn tells(task: &str, message: &str) -> bool {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", "--nocapture", "runtime::tests::function"])
            .env(TASK, task)
            .env_remove("RUST_LOG");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Killed(command.spawn().expect("this test again"));
        let output = BufReader::new(process.0.stdout.take().expect("it is piped"));
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let lines = std::iter::from_fn(|| told.recv_timeout(PATIENCE).ok());
        lines.into_iter().any(|line| line.contains(&format!("\"message\":\"{message}\"")))
    }

    #[test]
    fn a_line_leaves_when_the_function_waits_warns_panics_or_ends() {
        assert!(tells("wait", "work.begun"));
        assert!(tells("warn and spin", "work.begun") && tells("warn and spin", "work.odd"));
        assert!(tells("panic", "work.begun") && tells("panic", "panic.raised"));
        assert!(tells("end", "work.begun"));
        assert!(!tells("end", "work.odd"), "what nobody wrote is not told");
    }
}
