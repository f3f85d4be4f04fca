//! `lastmile dev` as a process, and the output of its console.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::programs::{Running, exchange, lastmile, word};

/// The longest wait for a step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `lastmile dev`, killed when it is dropped.
pub(crate) struct Dev {
    _program: Running,
    /// `host:port` of the page.
    pub(crate) page: String,
    /// `host:port` of the ingress.
    pub(crate) ingress: String,
}

/// The steps that an open page receives.
pub(crate) struct PageStream {
    lines: BufReader<TcpStream>,
}

/// Returns a subscription of `shop/orders` to this address, with additional fields of its
/// destination and of its spec.
pub(crate) fn subscription(name: &str, url: &str, destination: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}\"{destination}}}{more}}}\n---\n"
    )
}

impl Dev {
    /// Starts `dev` in a folder with these subscriptions and environment variables.
    pub(crate) fn start(folder: &Path, subscriptions: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_with(folder, subscriptions, variables, &[])
    }

    /// Starts `dev` with these subscriptions, environment variables and options.
    pub(crate) fn start_with(
        folder: &Path,
        subscriptions: &str,
        variables: &[(&str, &str)],
        options: &[&str],
    ) -> Self {
        std::fs::write(folder.join("subscriptions.yaml"), subscriptions)
            .expect("a file can be written");
        Self::start_on("0", folder, variables, options)
    }

    /// Starts `dev` with the existing subscriptions, and with its page on this port.
    pub(crate) fn start_on(
        port: &str,
        folder: &Path,
        variables: &[(&str, &str)],
        options: &[&str],
    ) -> Self {
        let arguments = ["dev", "--port", "0", "--aws-port", "0", "--console-port", port];
        let mut command = lastmile(folder, &[&arguments[..], options].concat());
        command.envs(variables.iter().copied());
        let mut program = Running::start(command);
        let host = |url: String| url.split('/').nth(2).expect("a host").to_owned();
        let ingress = host(word(&program.line_with("ready:"), "http://"));
        let page = host(word(&program.line_with("console:"), "http://"));
        Self { _program: program, page, ingress }
    }

    /// Publishes an event to `shop/orders`.
    pub(crate) fn publish(&self, event: &str) {
        let headers =
            format!("host: {}\r\ncontent-type: application/cloudevents+json\r\n", self.ingress);
        let answer = exchange(&self.ingress, "POST /topics/shop/orders", &headers, event);
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }

    /// Returns the response to a GET request.
    pub(crate) fn get(&self, path: &str) -> String {
        exchange(&self.page, &format!("GET {path}"), &format!("host: {}\r\n", self.page), "")
    }

    /// Returns a page. Fails unless the status is 200.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }

    /// Returns the response to a form, sent with the token of the page.
    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> String {
        let page = self.page("/publish");
        let token =
            page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let token = [("token", token.expect("a form with a token"))];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(form).extend_pairs(token).finish();
        let headers = format!(
            "host: {0}\r\norigin: http://{0}\r\ncontent-type: application/x-www-form-urlencoded\r\n",
            self.page
        );
        exchange(&self.page, &format!("POST {path}"), &headers, &body)
    }

    /// Returns all steps from the start.
    pub(crate) fn stream(&self) -> PageStream {
        PageStream::open(&self.page, "/stream")
    }
}

/// Returns the path of the page of a step's event.
pub(crate) fn event_page(step: &Value) -> String {
    format!("/events/{}", step["event"].as_str().expect("an id"))
}

impl PageStream {
    /// Opens the stream that a page at this `host:port` receives.
    pub(crate) fn open(page: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(page).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        let request = format!("GET {path} HTTP/1.1\r\nhost: {page}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        Self { lines: BufReader::new(stream) }
    }

    /// Waits for the next event with this name and parses it as JSON.
    pub(crate) fn json(&mut self, name: &str) -> Value {
        serde_json::from_str(&self.event(name)).expect("JSON")
    }

    /// Waits for the next event with this name.
    pub(crate) fn event(&mut self, name: &str) -> String {
        let mut found = false;
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("the stream goes on");
            assert!(read > 0, "the stream has ended");
            match line.trim_end().split_once(": ") {
                Some(("event", event)) => found = event == name,
                Some(("data", data)) if found => return data.to_owned(),
                Some(_) | None => {}
            }
        }
    }

    /// Waits for the next step with this text as `what`.
    pub(crate) fn step(&mut self, text: &str) -> Value {
        let [step] = self.steps([text]);
        step
    }

    /// Waits for steps with these texts, in any order, because functions may log them in any order.
    pub(crate) fn steps<const N: usize>(&mut self, texts: [&str; N]) -> [Value; N] {
        let mut found = [const { Value::Null }; N];
        while found.iter().any(Value::is_null) {
            let step = self.json("step");
            let wanted = texts.iter().zip(&mut found).find(|(text, _)| step["what"] == **text);
            if let Some((_, found)) = wanted.filter(|(_, found)| found.is_null()) {
                *found = step;
            }
        }
        found
    }
}
