//! The program in the background, and raw requests to its servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest run of a program in these tests, and the longest wait for a line.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program.
pub(crate) fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env_remove("ALLOW_PRIVATE_DESTINATIONS");
    command.env_remove("LASTMILE_STACK");
    command
}

/// What it printed on both streams, and its exit code.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    printed(&lastmile(folder, arguments).stdin(Stdio::null()).output().expect("the program runs"))
}

/// What it printed on both streams, and its exit code.
pub(crate) fn printed(output: &Output) -> (String, Option<i32>) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (String::from_utf8(text).expect("the output is text"), output.status.code())
}

/// A program in the background, killed when it goes out of scope.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let (sender, lines) = channel();
        let outputs: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(process.stdout.take().expect("it is piped")),
            Box::new(process.stderr.take().expect("it is piped")),
        ];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // The test has ended.
                    let _ = sender.send(line);
                }
            });
        }
        Self { process, lines, seen: Vec::new() }
    }

    /// The next line with this text.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("no {part} in {:#?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The lines with these texts, in the order of the texts: both outputs of a program are read, and neither waits for
    /// the other.
    pub(crate) fn lines_with<const N: usize>(&mut self, parts: [&str; N]) -> [String; N] {
        let mut found = [const { None }; N];
        while found.iter().any(Option::is_none) {
            let line = self.line_with("");
            let open = parts
                .iter()
                .zip(&mut found)
                .find(|(part, found)| found.is_none() && line.contains(*part));
            if let Some((_, found)) = open {
                *found = Some(line);
            }
        }
        found.map(|line| line.expect("every line was found"))
    }

    /// Its exit code, once it ends.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.process.wait().expect("it ends").code()
    }

    /// Every line so far.
    pub(crate) fn seen(&self) -> String {
        self.seen.join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The first word of a line with this beginning, without punctuation.
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

/// A receiver that gives every request this response: its address, and what it received.
pub(crate) fn receiver(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}/", listener.local_addr().expect("it listens"));
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 65_536];
            // Requests are small: one read has all of it.
            let length = stream.read(&mut bytes).unwrap_or_default();
            // The test has ended, or sees that there is no response.
            let _ = sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, received)
}
