//! Background programs, and raw requests to their servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest run of a program in these tests, and the longest wait for a line.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the command of the program in a folder.
pub(crate) fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env_remove("ALLOW_PRIVATE_DESTINATIONS");
    command.env_remove("LASTMILE_STACK").env("LASTMILE_CACHE", "off");
    command
}

/// Runs the program. Returns the text of both outputs, and the exit code.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    printed(&lastmile(folder, arguments).stdin(Stdio::null()).output().expect("the program runs"))
}

/// Returns the text of both outputs, and the exit code.
pub(crate) fn printed(output: &Output) -> (String, Option<i32>) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (String::from_utf8(text).expect("the output is text"), output.status.code())
}

/// A background program, killed when it is dropped.
///
/// Lines are in order only within one output.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<(OutputName, String)>,
    seen: Vec<SeenLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputName {
    Stdout,
    Stderr,
}

/// A line. `is_past` is true after a test has found the line, or a later one of the same output.
#[derive(Debug)]
struct SeenLine {
    output: OutputName,
    text: String,
    is_past: bool,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let (sender, lines) = channel();
        let outputs: [(OutputName, Box<dyn std::io::Read + Send>); 2] = [
            (OutputName::Stdout, Box::new(process.stdout.take().expect("it is piped"))),
            (OutputName::Stderr, Box::new(process.stderr.take().expect("it is piped"))),
        ];
        for (name, output) in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // The test may have ended.
                    let _ = sender.send((name, line));
                }
            });
        }
        Self { process, lines, seen: Vec::new() }
    }

    /// Waits for the next line with this text, in either output. Earlier lines of the same output
    /// are then past, but lines of the other output are not.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let found = self.seen.iter().position(|line| !line.is_past && line.text.contains(part));
            if let Some(at) = found {
                let output = self.seen[at].output;
                for line in self.seen[..=at].iter_mut().filter(|line| line.output == output) {
                    line.is_past = true;
                }
                return self.seen[at].text.clone();
            }
            self.read_line(part);
        }
    }

    /// Waits until this many lines have this text, in any order.
    pub(crate) fn wait_for_lines(&mut self, part: &str, count: usize) {
        while self.seen.iter().filter(|line| line.text.contains(part)).count() < count {
            self.read_line(part);
        }
    }

    /// Waits for the next line. `part` is the missing text, for the error.
    fn read_line(&mut self, part: &str) {
        let line = self.lines.recv_timeout(TIMEOUT);
        let (output, text) = line.unwrap_or_else(|_| panic!("no {part} in {}", self.seen()));
        self.seen.push(SeenLine { output, text, is_past: false });
    }

    /// Waits for the end and returns the exit code. After that, `seen` has every printed line.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let code = self.process.wait().expect("it ends").code();
        while let Ok((output, text)) = self.lines.recv_timeout(TIMEOUT) {
            self.seen.push(SeenLine { output, text, is_past: false });
        }
        code
    }

    /// Sends a signal, such as `INT`, to the program.
    pub(crate) fn signal(&self, name: &str) {
        let arguments = [format!("-{name}"), self.process.id().to_string()];
        assert!(Command::new("kill").args(arguments).status().expect("kill runs").success());
    }

    /// Returns every line read so far. Before the end of the program, others may follow.
    pub(crate) fn seen(&self) -> String {
        self.seen.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the first word of a line with this prefix, without punctuation.
pub(crate) fn word(line: &str, beginning: &str) -> String {
    let word = line.split([' ', ';', ',']).find(|word| word.starts_with(beginning));
    word.unwrap_or_else(|| panic!("no {beginning} in {line}")).to_owned()
}

/// Sends a request with these header lines to `host:port` and returns the whole response.
pub(crate) fn exchange(address: &str, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Starts a receiver that gives every request this response. Returns its URL and the received
/// requests.
pub(crate) fn receiver(answer: &'static str) -> (String, Receiver<String>) {
    deciding_receiver(move |_| answer.to_owned())
}

/// Starts a receiver that responds to each request only after a message on the returned channel.
pub(crate) fn waiting_receiver(answer: &'static str) -> (String, Receiver<String>, Sender<()>) {
    let (sender, answers) = channel();
    let answers = Mutex::new(answers);
    // After the end of the test there is no sender, so the wait ends.
    let wait = move || answers.lock().expect("no thread panics").recv().unwrap_or_default();
    let (url, received) = deciding_receiver(move |_| {
        wait();
        answer.to_owned()
    });
    (url, received, sender)
}

/// Starts a receiver that computes the response from each request.
pub(crate) fn deciding_receiver(
    decide: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (String, Receiver<String>) {
    let decide = Arc::new(decide);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}/", listener.local_addr().expect("it listens"));
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (sender, decide) = (sender.clone(), Arc::clone(&decide));
            // A connection without a request must not block the others.
            std::thread::spawn(move || {
                let request = request(&mut stream);
                // The test may have ended. Otherwise it notices the missing response.
                let _ = sender.send(request.clone());
                let _ = stream.write_all(decide(&request).as_bytes());
            });
        }
    });
    (address, received)
}

/// Reads a whole request. Head and body may arrive in several parts.
fn request(stream: &mut TcpStream) -> String {
    let (mut read, mut part) = (Vec::new(), [0; 65_536]);
    while !is_whole(&read) {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => read.extend_from_slice(&part[..length]),
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// Returns true if a request has its head, and the body that the head announces.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    request.len() >= end + 4 + length.map_or(0, |length| length.parse().expect("a length"))
}

/// Saves a file atomically: readers see the old or the new text.
pub(crate) fn save(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("a file can be written");
    std::fs::rename(&new, path).expect("a file can be replaced");
}
