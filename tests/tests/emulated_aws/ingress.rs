//! The ingress function as it is deployed, behind the HTTP API of `infra/ingress.yaml` and with the role of the template.

use serde_json::Value;

use super::stack::{Stack, script};
use super::{ARRIVAL_LIMIT, Deployment, event, event_id, on_deployment};

const PATH: &str = "/topics/shop/over-http";

/// The HTTP API, and a token that it accepts.
struct HttpApi {
    endpoint: String,
    host: String,
    token: String,
}

impl HttpApi {
    /// Deploys it in front of the function of this stack.
    async fn deploy(stack: &Stack) -> Self {
        let port = stack.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
        let function = stack.output("IngressFunctionArn").to_owned();
        let run = tokio::task::spawn_blocking(move || script("http_api.sh", &[&port, &function]));
        let printed: Value =
            serde_json::from_str(&run.await.expect("http_api.sh runs")).expect("it prints JSON");
        let text = |name: &str| printed[name].as_str().expect("a text").to_owned();
        let host = text("url").trim_start_matches("http://").to_owned();
        Self { endpoint: stack.endpoint.clone(), host, token: text("token") }
    }

    /// The status of the response to an event. The host is a header: its name is not in DNS.
    async fn publish(&self, token: Option<&str>, body: String) -> u16 {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = client.post(format!("{}{PATH}", self.endpoint)).header("host", &self.host);
        let request = request.header("content-type", "application/cloudevents+json").body(body);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.expect("a response").status().as_u16()
    }
}

/// The function itself has no keys here and publishes what every caller sends: only the API returns 401.
#[test]
fn the_http_api_refuses_requests_without_a_token_and_an_event_with_one_is_delivered() {
    on_deployment(|Deployment { stack, subscriber, .. }| async move {
        let api = HttpApi::deploy(stack).await;
        assert_eq!(api.publish(None, event("anonymous")).await, 401);
        assert_eq!(api.publish(Some("eyJ.e30.x"), event("forged")).await, 401);
        assert_eq!(api.publish(Some(&api.token), "{}".to_owned()).await, 400);
        assert_eq!(api.publish(Some(&api.token), event("over-http")).await, 202);
        let arrivals = subscriber.arrived("/over-http", ARRIVAL_LIMIT, |all| !all.is_empty()).await;
        assert_eq!(arrivals.iter().map(event_id).collect::<Vec<_>>(), ["over-http"]);
    });
}
