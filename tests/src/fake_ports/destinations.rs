//! Fake destinations. A request gets the reaction for a text that it contains, a real exchange, or
//! the default result.

use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::ports::{Clock as _, Late, SendHttp};
use delivery::request::{Method, Request};

use super::FakePorts;
use super::reactions::{Reaction, Reactions, answered};

/// Makes a real exchange.
type RealExchange = Box<dyn FnMut(&Request) -> Exchange + Send>;

pub(super) struct Destinations {
    reactions: Reactions,
    real: Option<RealExchange>,
    /// The result of requests without a reaction.
    result: TransportResult,
    duration_ms: u64,
    panics_left: usize,
    /// The `webhook-*` headers of responses to validation requests; if empty, no response consents.
    consent_headers: Vec<(String, String)>,
    /// The `authorization` of validation requests that get 401.
    refused_authorization: Option<String>,
    validation_requests: Vec<Request>,
    /// The requests, each with its start time.
    posts: Vec<(u64, Request)>,
    under_way: usize,
    most_under_way: usize,
}

impl Default for Destinations {
    fn default() -> Self {
        Self {
            reactions: Reactions::default(),
            real: None,
            result: answered(200),
            duration_ms: 0,
            panics_left: 0,
            consent_headers: Vec::new(),
            refused_authorization: None,
            validation_requests: Vec::new(),
            posts: Vec::new(),
            under_way: 0,
            most_under_way: 0,
        }
    }
}

/// Configuration.
impl FakePorts {
    /// Requests whose URL or body contains this text get these reactions in order. The last
    /// reaction repeats.
    #[must_use]
    pub fn with_reactions(self, text: &str, reactions: &[Reaction]) -> Self {
        self.state().destinations.reactions.add(text, reactions);
        self
    }

    /// Makes real exchanges for requests without a reaction. Each takes as much virtual time as its
    /// exchange states.
    #[must_use]
    pub fn with_real_exchanges(
        self,
        exchange: impl FnMut(&Request) -> Exchange + Send + 'static,
    ) -> Self {
        self.state().destinations.real = Some(Box::new(exchange));
        self
    }

    /// Sets the result of requests without a reaction.
    #[must_use]
    pub fn with_result(self, result: TransportResult) -> Self {
        self.state().destinations.result = result;
        self
    }

    /// Sets the status of requests without a reaction.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        self.with_result(answered(status))
    }

    /// Sets the duration of requests without a reaction.
    #[must_use]
    pub fn with_duration_ms(self, duration_ms: u64) -> Self {
        self.state().destinations.duration_ms = duration_ms;
        self
    }

    /// Makes the next request panic.
    pub fn with_one_panic(self) -> Self {
        self.state().destinations.panics_left = 1;
        self
    }

    /// Sets the headers of future responses to validation requests.
    pub fn set_consent_headers(&self, consent_headers: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.state().destinations.consent_headers = consent_headers.iter().map(owned).collect();
    }

    /// Responds with 401 to future validation requests with this `authorization`.
    pub fn refuse_authorization(&self, authorization: &str) {
        self.state().destinations.refused_authorization = Some(authorization.to_owned());
    }
}

/// The recorded requests.
impl FakePorts {
    /// The number of requests that deliver events or request a token.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state().destinations.posts.len()
    }

    /// The requests that deliver events or request a token.
    #[must_use]
    pub fn posts(&self) -> Vec<Request> {
        self.state().destinations.posts.iter().map(|(_, request)| request.clone()).collect()
    }

    /// The requests of [`FakePorts::posts`], each with its start time since the start of the test.
    #[must_use]
    pub fn timed_posts(&self) -> Vec<(u64, Request)> {
        let since = |(at_ms, request): &(u64, Request)| (at_ms - self.start_ms, request.clone());
        self.state().destinations.posts.iter().map(since).collect()
    }

    /// The requests that ask for consent.
    #[must_use]
    pub fn validation_requests(&self) -> Vec<Request> {
        self.state().destinations.validation_requests.clone()
    }

    /// The highest number of concurrent requests.
    #[must_use]
    pub fn most_requests_at_once(&self) -> usize {
        self.state().destinations.most_under_way
    }

    /// Resets the highest number of concurrent requests.
    pub fn forget_requests_at_once(&self) {
        self.state().destinations.most_under_way = 0;
    }
}

fn is_validation_request(request: &Request) -> bool {
    let validation = |(name, value): &(String, String)| {
        name == "aeg-event-type" && value == "SubscriptionValidation"
    };
    request.method == Method::Options || request.headers.iter().any(validation)
}

impl Destinations {
    /// Responds to a validation request. With consent headers, the response consents and echoes the
    /// code of a validation event.
    fn validation_response(&self, request: &Request, now_ms: u64) -> Exchange {
        let is_refused = |(name, value): &(String, String)| {
            name == "authorization" && Some(value) == self.refused_authorization.as_ref()
        };
        if request.headers.iter().any(is_refused) {
            return Exchange::new(answered(401), now_ms, 0);
        }
        let body =
            String::from_utf8_lossy(&request.body).replace("validationCode", "validationResponse");
        let data = body.split_once(r#""data":"#).and_then(|(_, rest)| rest.split_once(','));
        let echo = data
            .filter(|_| !self.consent_headers.is_empty())
            .map_or(Vec::new(), |(data, _)| data.as_bytes().to_vec());
        let result = TransportResult::Answered { status: 200, retry_after: None, body: echo };
        let content = Content { webhook: self.consent_headers.clone(), ..Content::default() };
        Exchange { content: Some(content), ..Exchange::new(result, now_ms, 0) }
    }

    /// Records a request, and responds if it is a validation request. Validation requests use up no
    /// reaction.
    fn record(&mut self, request: &Request, now_ms: u64) -> Option<Exchange> {
        if is_validation_request(request) {
            self.validation_requests.push(request.clone());
            return Some(self.validation_response(request, now_ms));
        }
        self.posts.push((now_ms, request.clone()));
        if self.panics_left > 0 {
            self.panics_left -= 1;
            panic!("injected by the test");
        }
        None
    }

    fn begin(&mut self) {
        self.under_way += 1;
        self.most_under_way = self.most_under_way.max(self.under_way);
    }
}

impl SendHttp for FakePorts {
    async fn exchange(&self, request: &Request) -> Exchange {
        self.exchange_or_late(request).await.0
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let started_ms = self.now_ms();
        if let Some(response) = self.state().destinations.record(request, started_ms) {
            return (response, None);
        }
        let reaction = self.state().destinations.reactions.next(request);
        if let Some(reaction) = reaction {
            self.state().destinations.begin();
            let reacted = reaction.run(self.clock.clone()).await;
            self.state().destinations.under_way -= 1;
            return reacted;
        }
        let real = self.state().destinations.real.as_mut().map(|exchange| exchange(request));
        if let Some(exchange) = real {
            self.clock.sleep(exchange.duration_ms).await;
            return (Exchange { started_ms, ..exchange }, None);
        }
        let (result, duration_ms) = {
            let destinations = &self.state().destinations;
            (destinations.result.clone(), destinations.duration_ms)
        };
        self.clock.advance(duration_ms);
        (Exchange::new(result, started_ms, duration_ms), None)
    }
}
