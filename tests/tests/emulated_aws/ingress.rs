//! The ingress function as it is deployed: invoked as its URL invokes it, with the role of the template.

use serde_json::{Value, json};

use super::stack::{Stack, script};
use super::{ARRIVAL_LIMIT, Deployment, event, event_id, on_deployment};

/// The response of the function to a request, as a function URL passes it on.
async fn response(stack: &Stack, path: &str, body: &str) -> Value {
    let port = stack.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
    let function = stack.output("IngressFunctionName").to_owned();
    let headers = json!({"content-type": "application/cloudevents+json"});
    let request = json!({"version": "2.0", "rawPath": path, "rawQueryString": "", "headers": headers, "body": body,
        "requestContext": {"http": {"method": "POST", "path": path}, "stage": "$default"}, "isBase64Encoded": false});
    let request = request.to_string();
    let run =
        tokio::task::spawn_blocking(move || script("invoke.sh", &[&port, &function, &request]));
    serde_json::from_str(&run.await.expect("invoke.sh runs")).expect("the function responds")
}

#[test]
fn an_event_that_comes_over_http_is_delivered_and_what_is_none_is_refused() {
    on_deployment(|Deployment { stack, subscriber, .. }| async move {
        let refused = response(stack, "/topics/shop/over-http", "{}").await;
        assert_eq!(refused["statusCode"], 400, "{refused}");
        let published = response(stack, "/topics/shop/over-http", &event("over-http")).await;
        assert_eq!(published["statusCode"], 202, "{published}");
        let arrivals = subscriber.arrived("/over-http", ARRIVAL_LIMIT, |all| !all.is_empty()).await;
        assert_eq!(arrivals.iter().map(event_id).collect::<Vec<_>>(), ["over-http"]);
    });
}
