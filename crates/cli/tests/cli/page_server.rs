//! The page as a process, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};

use crate::sample_letters::TestContainer;

/// A served page, until it goes out of scope.
pub(crate) struct PageServer {
    process: Child,
    /// Its address, without a slash at its end.
    pub(crate) url: String,
    client: Client,
}

impl Drop for PageServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PageServer {
    /// Serves this container.
    pub(crate) fn start(container: &TestContainer, arguments: &[&str]) -> Self {
        let mut command = container.command(&[&["serve", "--port", "0"], arguments].concat());
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
        let response = self.get(path).send().await.expect("the page answers");
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.expect("text")
    }

    /// Status and text of a page.
    pub(crate) async fn status_and_text(&self, path: &str) -> (u16, String) {
        status_and_text(self.get(path).send().await.expect("the page answers")).await
    }

    pub(crate) fn post(&self, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let post = self.client.post(format!("{}{path}", self.url));
        post.header("content-type", "application/x-www-form-urlencoded").body(body)
    }

    /// The token of its forms.
    pub(crate) async fn token(&self) -> String {
        let page = self.page("/replay").await;
        let token =
            page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        token.expect("a form with a token").to_owned()
    }

    /// Ends it like Ctrl-C; whether it succeeded, and its standard error.
    pub(crate) fn interrupt(mut self) -> (bool, String) {
        let id = self.process.id().to_string();
        let status_and_text =
            std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
        assert!(status_and_text.success());
        let ended = self.process.wait().expect("it ends");
        let mut said = String::new();
        self.process.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
        (ended.success(), said)
    }
}

pub(crate) async fn status_and_text(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.expect("text"))
}
