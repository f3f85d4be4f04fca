//! `lastmile dev` as a process, and what its console says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::programs::{Running, exchange, lastmile, word};

/// The longest wait for something to happen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The application, until it goes out of scope.
pub(crate) struct Dev {
    _program: Running,
    /// `host:port` of the page.
    pub(crate) page: String,
    /// `host:port` of the ingress.
    pub(crate) ingress: String,
}

/// Steps as an open page gets them.
pub(crate) struct PageStream {
    lines: BufReader<TcpStream>,
}

/// A subscription of `shop/orders` to this address, with more fields of its destination and of itself.
pub(crate) fn subscription(name: &str, url: &str, destination: &str, more: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}\"{destination}}}{more}}}\n---\n"
    )
}

impl Dev {
    /// Starts it in a folder with these subscriptions, and with variables of the environment.
    pub(crate) fn start(folder: &Path, subscriptions: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_with(folder, subscriptions, variables, &[])
    }

    /// The same with more options.
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

    /// The same with the subscriptions that are there, with its page on this port.
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

    /// The response to a request.
    pub(crate) fn get(&self, path: &str) -> String {
        exchange(&self.page, &format!("GET {path}"), &format!("host: {}\r\n", self.page), "")
    }

    /// A page; fails unless the status is 200.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }

    /// The response to a form, with the token of the page.
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

    /// Everything from the start on.
    pub(crate) fn stream(&self) -> PageStream {
        PageStream::open(&self.page, "/stream")
    }
}

/// The page of the event of a step.
pub(crate) fn event_page(step: &Value) -> String {
    format!("/events/{}", step["event"].as_str().expect("an id"))
}

impl PageStream {
    /// What a page at this `host:port` is told.
    pub(crate) fn open(page: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(page).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        let request = format!("GET {path} HTTP/1.1\r\nhost: {page}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        Self { lines: BufReader::new(stream) }
    }

    /// The next event of this name, as JSON.
    pub(crate) fn json(&mut self, name: &str) -> Value {
        serde_json::from_str(&self.event(name)).expect("JSON")
    }

    /// The next event of this name.
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

    /// The next step that says this of what happened.
    pub(crate) fn step(&mut self, what: &str) -> Value {
        let [step] = self.steps([what]);
        step
    }

    /// The next steps of these names, which functions may log in any order.
    pub(crate) fn steps<const N: usize>(&mut self, whats: [&str; N]) -> [Value; N] {
        let mut found = [const { Value::Null }; N];
        while found.iter().any(Value::is_null) {
            let step = self.json("step");
            let wanted = whats.iter().zip(&mut found).find(|(what, _)| step["what"] == **what);
            if let Some((_, found)) = wanted.filter(|(_, found)| found.is_null()) {
                *found = step;
            }
        }
        found
    }
}
