//! A function binary as a child process, and the resources it uses.
//!
//! CPU time is the sum over all live threads of `/proc/<pid>/task/*/schedstat`, in nanoseconds;
//! peak memory is `VmHWM`. The bench reads the output of the process, as Lambda does, and discards
//! it. Dropping a [`Function`] kills its process.
//! <https://docs.kernel.org/scheduler/sched-stats.html>

use std::io::{copy, sink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, ensure};

use crate::contenders::Contender;
use crate::server::Server;

/// A running process of a function. Dropping the value kills the process.
pub(crate) struct Function {
    process: Child,
    /// Time at which the process was started.
    pub(crate) started: Instant,
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // Without this a killed child stays a zombie until the bench ends.
        let _ = self.process.wait();
    }
}

impl Function {
    /// Starts a contender that talks to this server.
    pub(crate) fn start(contender: &Contender, server: &Server) -> anyhow::Result<Self> {
        let mut command = Command::new(&contender.program);
        command
            .args(&contender.arguments)
            // A variable of this shell, such as a real AWS profile, must not reach a contender.
            .env_clear()
            .envs(environment(server))
            .envs(contender.variables.clone());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let started = crate::clock::now();
        let mut process =
            command.spawn().with_context(|| format!("{} cannot be started", contender.name))?;
        let mut output = process.stdout.take().context("the output is not piped")?;
        // A full pipe would block the function.
        thread::spawn(move || copy(&mut output, &mut sink()));
        Ok(Self { process, started })
    }

    /// Terminates the process with SIGTERM, so that a profiler that wraps the function can write
    /// its profile.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let ended =
            Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(ended.success(), "the process cannot be ended");
        self.process.wait()?;
        Ok(())
    }

    /// Returns the CPU time that the live threads of the process have used so far, in user and
    /// system mode.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut cpu = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            // A thread may end between the listing and the read.
            let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let on_cpu = stat.split_whitespace().next().context("schedstat has no CPU time")?;
            cpu += Duration::from_nanos(on_cpu.parse()?);
        }
        Ok(cpu)
    }

    /// Returns the peak resident memory of the process, in bytes.
    pub(crate) fn peak_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .context("status has no VmHWM")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1_024)
    }
}

/// The environment of every function: Lambda's own variables and the endpoints.
fn environment(server: &Server) -> Vec<(&'static str, String)> {
    let url = format!("http://{}", server.aws);
    let queue = |name: &str| format!("{url}/000000000000/{name}");
    vec![
        // `node` and `valgrind` are looked up by name, in the child's PATH.
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
        // The log level in `template.yaml`: a log line per event is part of the cost.
        ("RUST_LOG", "warn,adapters=info,dispatch=info,deadletter=info".to_owned()),
        ("TARGET_URL", format!("http://{}/hook/204", server.subscriber)),
        ("BUCKET", "dead-letters".to_owned()),
        ("SUBSCRIPTIONS_URI", "s3://config/subscriptions/".to_owned()),
        ("TABLE_NAME", "lastmile".to_owned()),
        ("EVENTS_QUEUE_URL", queue("events")),
        ("RETRY_QUEUE_URL", queue("retry")),
        ("SLOW_QUEUE_URL", queue("slow")),
        ("ISOLATION_QUEUE_URL", queue("isolation")),
        ("DEAD_LETTER_QUEUE_URL", queue("dead-letter")),
        ("LAST_RESORT_QUEUE_URL", queue("last-resort")),
        ("DEAD_LETTER_CONTAINER", "dead-letters".to_owned()),
        // The subscriber is on loopback and without TLS, which dispatch refuses by default.
        ("ALLOW_PRIVATE_DESTINATIONS", "127.0.0.1".to_owned()),
    ]
}
