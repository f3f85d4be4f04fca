//! The nine destinations of the night, as servers of this machine that fail, and the subscriptions to them.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use adapters::http::{HttpSender, Network};
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::delivery::outcome::Exchange;
use delivery::ports::SendHttp as _;
use delivery::request::Request;
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::scripted::{Script, Scripted, ScriptedRequest, Step, answer};
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};

/// The subscription whose destination is down all the time.
pub(crate) const BILLING: &str = "shop/invoices/billing";
/// The subscription whose destination rejects one type of event.
pub(crate) const CRM: &str = "shop/orders/crm";
/// All subscriptions.
pub(crate) const SUBSCRIPTIONS: [&str; 9] = [
    BILLING,
    CRM,
    "shop/orders/mail",
    "shop/orders/legacy",
    "shop/orders/partner",
    "shop/search/index",
    "shop/payments/ledger",
    "shop/payments/archive",
    "shop/payments/audit",
];

/// The response of `crm` to an order without an address, as FastAPI writes it.
const INVALID: &str =
    r#"{"detail":[{"type":"missing","loc":["body","customer","email"],"msg":"Field required"}]}"#;

/// The servers, and the sender that reaches them.
pub(crate) struct Destinations {
    runtime: Runtime,
    sender: HttpSender,
    plain: Scripted,
    untrusted: Scripted,
    /// A port that is taken, and that nobody listens on.
    closed: TcpSocket,
}

impl Destinations {
    /// Starts the servers.
    pub(crate) fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (plain, untrusted) = runtime.block_on(async {
            let certificate = Authority::new()
                .and_then(|authority| {
                    authority.server("127.0.0.1", Validity::Always, &["http/1.1"])
                })
                .expect("a certificate");
            let script = Script::Answers(Arc::new(steps));
            let address = (Ipv4Addr::LOCALHOST, 0).into();
            let plain = Scripted::start(steps).await.expect("a free port");
            (plain, Scripted::serve(address, Some(certificate), script).await.expect("a free port"))
        });
        let closed = TcpSocket::new_v4().expect("a socket");
        closed.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        Self { runtime, sender: sender(), plain, untrusted, closed }
    }

    /// One real exchange.
    pub(crate) fn exchange(&self, request: &Request) -> Exchange {
        self.runtime.block_on(self.sender.exchange(request))
    }

    /// The subscriptions to them. Each has the default policy; only `mail` waits less than 30 seconds for a response, because
    /// its silence takes real time.
    pub(crate) fn subscriptions(&self) -> String {
        let url = |name: &str| match name {
            "billing" => format!("http://{}/", self.closed.local_addr().expect("it is bound")),
            "legacy" => self.untrusted.endpoint(),
            "partner" => "https://partner.example.com/".to_owned(),
            _ => format!("{}/{name}", self.plain.endpoint()),
        };
        subscriptions(|name| (url(name), if name == "mail" { ", timeout: PT1S" } else { "" }))
    }
}

/// The file of the subscriptions, each with a URL and more fields of its destination.
pub(crate) fn subscriptions(destination: impl Fn(&str) -> (String, &'static str)) -> String {
    let document = |full: &&str| {
        let mut parts = full.split('/').skip(1);
        let (topic, name) = (parts.next().expect("a topic"), parts.next().expect("a name"));
        let (url, more) = destination(name);
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
             spec: {{destination: {{url: '{url}'{more}}}}}\n"
        )
    };
    SUBSCRIPTIONS.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// The sender of dispatch, which may reach the loopback address. No name of this network resolves.
fn sender() -> HttpSender {
    let private = PrivateDestinations::parse("127.0.0.1").expect("an address");
    let policy = AddressPolicy::new(private, OwnAddresses::default());
    let unresolved = || io::Error::other("failed to lookup address information");
    let lookup = Arc::new(move |_| -> adapters::http::Resolved {
        Box::pin(async move { Err(unresolved()) })
    });
    HttpSender::on(&Network { lookup, ..Network::default() }, policy).expect("TLS works")
}

/// The reaction of the destination of this path to an event.
fn steps(request: &ScriptedRequest) -> Vec<Step> {
    let path = request.head.split(' ').nth(1).unwrap_or_default();
    let body = String::from_utf8_lossy(&request.body);
    let has_type = |name: &str| body.contains(&format!(r#""type":"{name}""#));
    let json = [("content-type", "application/json")];
    match path {
        "/mail" => vec![Step::Silence],
        "/crm" if has_type("order.created") => {
            vec![answer("422 Unprocessable Entity", &json, INVALID.as_bytes())]
        }
        "/index" => vec![answer("503 Service Unavailable", &[], b"overloaded")],
        "/ledger" => vec![not_found()],
        "/archive" => vec![answer("413 Content Too Large", &[], b"the document is too long")],
        "/audit" if has_type("payment.refunded") => {
            vec![answer("302 Found", &[("location", "https://sso.example.com/login")], b"")]
        }
        "/audit" => {
            vec![answer("401 Unauthorized", &json, br#"{"error":"the token has expired"}"#)]
        }
        _ => vec![answer("204 No Content", &[], b"")],
    }
}

/// The response of `ledger`.
pub(crate) fn not_found() -> Step {
    answer("404 Not Found", &[], b"no such account book")
}
