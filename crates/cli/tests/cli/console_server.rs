//! The console as a process, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};

use crate::sample_letters::TestContainer;

/// The heading of a page whose dead letters are still being read.
const READING: &str = "<h1>Reading the dead letters</h1>";

/// A served page, until it goes out of scope.
pub(crate) struct ConsoleServer {
    process: Child,
    /// Its address, without a slash at its end.
    pub(crate) url: String,
    client: Client,
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ConsoleServer {
    /// Serves this container.
    pub(crate) fn start(container: &TestContainer, arguments: &[&str]) -> Self {
        let mut command = container.console(&[&["--port", "0"], arguments].concat());
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut ready = String::new();
        let said = process.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut ready).expect("it says that it is ready");
        let url =
            ready.split_whitespace().last().unwrap_or_default().trim_end_matches('/').to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{ready}");
        let client =
            Client::builder().redirect(Policy::none()).build().expect("a client can be made");
        Self { process, url, client }
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    /// A page; fails unless the status is 200.
    pub(crate) async fn page(&self, path: &str) -> String {
        let (status, page) = self.status_and_text(path).await;
        assert_eq!(status, 200, "{path}");
        page
    }

    /// Status and text of a page. What is being read takes longer than a page waits for it where
    /// much is to be read, or on a busy machine.
    pub(crate) async fn status_and_text(&self, path: &str) -> (u16, String) {
        loop {
            let answer = self.get(path).send().await.expect("the page answers");
            let (status, page) = status_and_text(answer).await;
            if !page.contains(READING) {
                return (status, page);
            }
            Machine.sleep(100).await;
        }
    }

    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let post = self.client.post(format!("{}{path}", self.url));
        post.header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    /// The token of its forms.
    pub(crate) async fn token(&self) -> String {
        hidden(&self.page("/replay").await, "token")
    }

    /// The fingerprint of the dead letters that the form of a page would change.
    pub(crate) async fn fingerprint(&self, path: &str) -> String {
        hidden(&self.page(path).await, "fingerprint")
    }

    /// Ends it like Ctrl-C; whether it succeeded, and its standard error.
    pub(crate) fn interrupt(mut self) -> (bool, String) {
        interrupt(&self.process);
        let ended = self.process.wait().expect("it ends");
        let mut said = String::new();
        self.process.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
        (ended.success(), said)
    }
}

/// Sends a process the signal of Ctrl-C.
pub(crate) fn interrupt(process: &Child) {
    let id = process.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
    assert!(sent.success());
}

/// The value of a hidden field.
pub(crate) fn hidden(page: &str, name: &str) -> String {
    let rest = page.split(&format!("name=\"{name}\" value=\"")).nth(1);
    let value = rest.and_then(|rest| rest.split('"').next());
    value.unwrap_or_else(|| panic!("a form with a {name}")).to_owned()
}

pub(crate) async fn status_and_text(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.expect("text"))
}
