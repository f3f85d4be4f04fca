//! A function binary as a child process, and what the operating system says it used.
//!
//! CPU is the time on a processor of `/proc/<pid>/task/*/schedstat`, all living threads together,
//! in nanoseconds; peak memory is `VmHWM`. Its output is read and thrown away, as Lambda reads it.
//! Dropping it kills it.
//! <https://docs.kernel.org/scheduler/sched-stats.html>

use std::io::{copy, sink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, ensure};

use crate::contenders::Contender;
use crate::server::Server;

/// A function process.
pub(crate) struct Function {
    process: Child,
    /// When it was started.
    pub(crate) started: Instant,
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Function {
    /// Starts a contender beside this server.
    pub(crate) fn start(contender: &Contender, server: &Server) -> anyhow::Result<Self> {
        let mut command = Command::new(&contender.program);
        command
            .args(&contender.arguments)
            .env_clear()
            .envs(environment(server))
            .envs(contender.variables.clone());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let started = crate::clock::now();
        let mut process =
            command.spawn().with_context(|| format!("{} cannot be started", contender.name))?;
        let mut output = process.stdout.take().context("its output is piped")?;
        thread::spawn(move || copy(&mut output, &mut sink()));
        Ok(Self { process, started })
    }

    /// Ends it as its surroundings would, so that a profiler around it can write down what it saw.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let ended =
            Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(ended.success(), "the process cannot be ended");
        self.process.wait()?;
        Ok(())
    }

    /// The CPU it has used so far, in user and system mode, by the threads it has.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut cpu = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            // A thread may end while it is looked at.
            let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let on_cpu = stat
                .split_whitespace()
                .next()
                .context("schedstat tells the time on a processor")?;
            cpu += Duration::from_nanos(on_cpu.parse()?);
        }
        Ok(cpu)
    }

    /// The most memory it has had resident, in bytes.
    pub(crate) fn peak_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .context("status has VmHWM")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1_024)
    }
}

/// What every function finds in its environment: Lambda's own variables and the endpoints.
fn environment(server: &Server) -> Vec<(&'static str, String)> {
    let url = format!("http://{}", server.aws);
    let queue = |name: &str| format!("{url}/000000000000/{name}");
    vec![
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("AWS_LAMBDA_RUNTIME_API", server.aws.to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", "bench".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/bench".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench".to_owned()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
        ("AWS_ENDPOINT_URL", url.clone()),
        ("RUST_LOG", "warn,adapters=info,dispatch=info,deadletter=info".to_owned()),
        ("TARGET_URL", format!("http://{}/hook/204", server.subscriber)),
        ("BUCKET", "dead-letters".to_owned()),
        ("SUBSCRIPTIONS_URI", "s3://config/subscriptions.yaml".to_owned()),
        ("EVENTS_QUEUE_URL", queue("events")),
        ("RETRY_QUEUE_URL", queue("retry")),
        ("DEAD_LETTER_QUEUE_URL", queue("dead-letter")),
        ("LAST_RESORT_QUEUE_URL", queue("last-resort")),
        ("DEAD_LETTER_CONTAINER", "dead-letters".to_owned()),
        ("ALLOW_PRIVATE_DESTINATIONS", "127.0.0.1".to_owned()),
        ("S3_FORCE_PATH_STYLE", "true".to_owned()),
    ]
}
