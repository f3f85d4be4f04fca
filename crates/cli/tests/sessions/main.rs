//! The commands of each page, pasted into one terminal, block after block.
//!
//! This is a separate test binary because these commands use the default ports, like their readers,
//! and wait in real time. One test runs all pages, one after the other. `--test documented` checks
//! the pages themselves.
//!
//! A page is one session of bash in a new folder with the samples of the repository, and with
//! `lastmile` on the `PATH`. The test fails if a command fails, if expected output is missing, or
//! if another program uses a port. Background programs of a page are ended after the page.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use pages::{Block, Page};
use tempfile::TempDir;

#[path = "../documented/pages.rs"]
#[expect(dead_code, reason = "the lines of links are for the test that follows them")]
mod pages;

/// The default ports of local programs: the subscriber, the ingress, SQS and S3, the page, and the
/// example receiver.
const PORTS: [u16; 5] = [9180, 8080, 4566, 9181, 9190];
/// The programs that use these ports.
const USERS_OF_PORTS: [&str; 5] =
    ["lastmile subscriber", "lastmile dev", "lastmile demo", "lastmile console", "receiver.py"];
/// The longest wait for a port that a program of the previous page uses, or that another run of
/// these tests uses.
const UNTIL_FREE: Duration = Duration::from_secs(180);
/// The longest time for a block, and for its output.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Tools that a machine may lack. Pages that need a missing tool are reported as skipped.
const OPTIONAL_TOOLS: [&str; 3] = ["curl", "openssl", "python3"];
/// This machine may be busy. Therefore `sleep` lasts twice as long, and waits until the background
/// programs listen.
const SLEEP: &str = r#"sleep() {
  command sleep $(($1 * 2))
  for server in subscriber:9180 'lastmile dev:8080' 'lastmile console:9181' receiver.py:9190; do
    if jobs -r | grep -q "${server%:*}"; then
      until (: < "/dev/tcp/127.0.0.1/${server##*:}") 2> /dev/null; do command sleep 0.1; done
    fi
  done
}
"#;
/// The interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(50);
/// Represents any text in a line of expected output.
const ANY: &str = "…";
/// Folders that a page at the root of the repository may use.
const SAMPLES: [&str; 3] = ["examples", "schemas", "infra"];

/// A running page.
struct Session {
    folder: TempDir,
    shell: Child,
    input: ChildStdin,
    /// The number of blocks run so far.
    blocks: usize,
    /// The offset at which the output of the last block begins.
    begin: usize,
}

impl Session {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for sample in SAMPLES {
            copy(&pages::root().join(sample), &folder.path().join(sample));
        }
        let program = Path::new(env!("CARGO_BIN_EXE_lastmile"));
        let here = program.parent().expect("the program is in a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = File::create(folder.path().join(".output")).expect("a file can be made");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-s"]).current_dir(folder.path()).process_group(0);
        shell.env("PATH", format!("{here}:{path}")).env("HOME", folder.path());
        shell.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
        shell.stdin(Stdio::piped());
        shell.stdout(output.try_clone().expect("a file has two handles")).stderr(output);
        let mut shell = shell.spawn().expect("bash starts");
        let mut input = shell.stdin.take().expect("it is piped");
        input.write_all(SLEEP.as_bytes()).expect("bash reads its input");
        Self { folder, shell, input, blocks: 0, begin: 0 }
    }

    fn output(&self) -> String {
        let bytes = fs::read(self.folder.path().join(".output")).expect("the output can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Runs a block until its last command has ended.
    fn run(&mut self, block: &Block) -> Result<(), String> {
        self.blocks += 1;
        self.begin = self.output().len();
        let (file, marker) =
            (format!(".block-{}", self.blocks), format!("@@ended {}", self.blocks));
        fs::write(self.folder.path().join(&file), &block.text).expect("a file can be written");
        let line = format!(". ./{file} < /dev/null; echo '{marker}'\n");
        self.input.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
        let ended = until(TIMEOUT, || {
            if self.output().contains(&marker) {
                return Some(Ok(()));
            }
            let status = self.shell.try_wait().expect("it is our child");
            status.map(|status| Err(format!("a command failed: {status}")))
        });
        ended.unwrap_or_else(|| Err(format!("it did not end within {} s", TIMEOUT.as_secs())))
    }

    /// Waits until these lines have been printed in this order since the last block began.
    fn expect(&self, block: &Block) -> Result<(), String> {
        let missing = || {
            let output = self.output();
            let printed = output.get(self.begin..).unwrap_or_default();
            missing_line(printed, &block.text).map(str::to_owned)
        };
        let printed = until(TIMEOUT, || missing().is_none().then_some(()));
        printed
            .ok_or_else(|| format!("this line was not printed: {}", missing().unwrap_or_default()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The group contains the shell and all programs that it started. They may have ended
        // already.
        let group = format!("-{}", self.shell.id());
        let mut kill = Command::new("kill");
        let _ = kill.args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.shell.wait();
    }
}

/// Returns the first expected line that is missing after the lines before it.
fn missing_line<'a>(printed: &str, expected: &'a str) -> Option<&'a str> {
    let mut lines = printed.lines();
    let wanted = expected.lines().filter(|line| !line.trim().is_empty() && line.trim() != ANY);
    wanted.into_iter().find(|wanted| !lines.any(|line| matches(line, wanted)))
}

/// Returns true if a line has the parts of the expected line in this order.
fn matches(line: &str, wanted: &str) -> bool {
    let mut rest = line;
    wanted.trim().split(ANY).all(|part| {
        let found = rest.find(part.trim());
        rest = found.map_or("", |at| rest.split_at(at + part.trim().len()).1);
        found.is_some()
    })
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(done.expect("cp runs").success());
}

/// Returns the ports that are in use.
fn taken_ports() -> Vec<u16> {
    PORTS.into_iter().filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_err()).collect()
}

fn wait_for_ports(page: &str) -> Result<(), String> {
    let free = until(UNTIL_FREE, || taken_ports().is_empty().then_some(()));
    free.ok_or_else(|| {
        let taken = taken_ports();
        format!(
            "{page}: its commands use the default ports, and another program of this machine listens on {taken:?} of \
             127.0.0.1; end it, and run this test again"
        )
    })
}

/// Waits until the condition returns a value; `None` after the limit.
fn until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let looks = limit.as_millis() / POLL.as_millis();
    (0..looks).find_map(|_| {
        let found = condition();
        if found.is_none() {
            sleep(POLL);
        }
        found
    })
}

/// Returns a tool that the page uses and this machine lacks.
fn missing_tool(page: &Page) -> Option<&'static str> {
    let runs = |tool: &str| {
        page.blocks.iter().any(|block| block.is("sh") && block.text.contains(&format!("{tool} ")))
    };
    let here = |tool: &str| {
        Command::new("bash")
            .args(["-c", &format!("command -v {tool}")])
            .stdout(Stdio::null())
            .status()
    };
    OPTIONAL_TOOLS
        .into_iter()
        .find(|tool| runs(tool) && !here(tool).is_ok_and(|status| status.success()))
}

/// Runs a page. The error states the place, the cause and the printed text.
fn run(page: &Page) -> Result<(), String> {
    let uses_ports = page
        .blocks
        .iter()
        .filter(|block| block.is("sh"))
        .any(|block| USERS_OF_PORTS.iter().any(|user| block.text.contains(user)));
    if let Some(tool) = missing_tool(page) {
        // The test harness captures standard output, but not this.
        let line =
            format!("SKIPPED: the commands of {}: {tool} is not on this machine\n", page.name);
        std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
        return Ok(());
    }
    if uses_ports {
        wait_for_ports(&page.name)?;
    }
    let mut session = Session::start();
    let mut is_last_run = false;
    for block in &page.blocks {
        let done = match &block.words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["sh"] => {
                is_last_run = true;
                session.run(block)
            }
            ["text", "output"] if is_last_run => session.expect(block),
            ["text", "output"] => Err("no block that runs is before this output".to_owned()),
            [_, file] if Path::new(file).extension().is_some() => {
                fs::write(session.folder.path().join(file), &block.text)
                    .map_err(|error| error.to_string())
            }
            ["sh", _] => {
                is_last_run = false;
                Ok(())
            }
            _ => Ok(()),
        };
        done.map_err(|why| {
            let printed = session.output();
            format!("{}:{}: {why}\n{}\n--- printed:\n{printed}", page.name, block.line, block.text)
        })?;
    }
    Ok(())
}

#[test]
fn every_page_runs_as_pasted() {
    let only = std::env::var("ONLY_PAGE").unwrap_or_default();
    let pages = pages::manual().into_iter().filter(|page| page.name.contains(&only));
    let runnable: Vec<Page> =
        pages.filter(|page| page.blocks.iter().any(|block| block.is("sh"))).collect();
    assert!(!runnable.is_empty());
    let failed: Vec<String> = runnable.iter().filter_map(|page| run(page).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_page_that_does_not_do_what_it_says_fails() {
    for (text, why) in [
        ("```sh\nfalse\n```\n", "a command failed"),
        ("```sh\necho one | cat\nlastmile check nothing.yaml\n```\n", "a command failed"),
        ("```text output\none\n```\n", "no block that runs"),
    ] {
        let said = run(&Page::parse("page.md", text)).expect_err(text);
        assert!(said.contains(why), "{said}");
    }
    let text = "```yaml new.yaml\na: 1\n```\n```sh\ncat new.yaml\necho done here &\n```\n```text output\na: …\n\
                do…here\n```\n";
    run(&Page::parse("page.md", text)).expect("it is true");
    assert_eq!(missing_line("a b\nc\n", "a …\nd"), Some("d"));
    assert_eq!(missing_line("a\nb\n", "b\na"), Some("a"));
}
