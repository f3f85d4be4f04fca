//! Assembles the components of the dispatch function, which share one set of ports, and runs single
//! pieces of work.

use std::sync::{Arc, Mutex};

use adapters::runtime::contained;
use adapters::telemetry::Telemetry;
use delivery::ports::DispatchPorts;
use delivery::subscription::aws::policy::AwsPolicy;
use delivery::subscription::name::TopicName;
use delivery::subscription::sink::Container;
use futures::FutureExt as _;

use crate::attempt::Attempts;
use crate::credentials::Credentials;
use crate::destination::Destinations;
use crate::endings::Endings;
use crate::intake::Records;
use crate::invocation::Invocation;
use crate::news;
use crate::notices::Notices;
use crate::plan::Work;
use crate::sending::Sending;
use crate::slow_lane::SlowLane;
use crate::table::SharedTable;

/// The dispatch function. All of its components share one set of ports.
#[derive(Debug)]
pub struct Dispatch<P> {
    pub(crate) ports: Arc<P>,
    pub(crate) records: Records<P>,
    pub(crate) destinations: Arc<Destinations<P>>,
    pub(crate) attempts: Attempts<P>,
    pub(crate) endings: Arc<Endings<P>>,
    pub(crate) news: Arc<news::Exchange<P>>,
    pub(crate) telemetry: Arc<Telemetry>,
    settings: Settings,
}

/// The settings, kept so that each `with_…` method can assemble the components again.
#[derive(Debug, Clone)]
struct Settings {
    container: Container,
    default_topic: Option<TopicName>,
    functions: u32,
    targets: AwsPolicy,
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Creates the function with the deployment's dead-letter container, and the topic of records
    /// that name no topic.
    pub fn new(ports: P, container: Container, default_topic: Option<TopicName>) -> Self {
        let settings =
            Settings { container, default_topic, functions: 1, targets: AwsPolicy::default() };
        Self::of_parts(Arc::new(ports), settings, Arc::default())
    }

    /// Sets the maximum number of concurrent functions. They share the rates that destinations
    /// allow.
    #[must_use]
    pub fn with_max_concurrency(self, functions: u32) -> Self {
        Self::of_parts(self.ports, Settings { functions, ..self.settings }, self.telemetry)
    }

    /// Sets the AWS targets that subscriptions may use. Without this call, no target is allowed.
    #[must_use]
    pub fn with_targets(self, targets: AwsPolicy) -> Self {
        Self::of_parts(self.ports, Settings { targets, ..self.settings }, self.telemetry)
    }

    /// Sets the telemetry of this function.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self::of_parts(self.ports, self.settings, Arc::new(telemetry))
    }

    fn of_parts(ports: Arc<P>, settings: Settings, telemetry: Arc<Telemetry>) -> Self {
        let slow_lane = Arc::new(SlowLane::default());
        let table = Arc::new(SharedTable::new(Arc::clone(&ports)));
        let credentials = Arc::new(Credentials::new(Arc::clone(&ports), settings.targets.clone()));
        let destinations =
            Destinations::new(&ports, &table, &credentials, &slow_lane, settings.functions);
        let destinations = Arc::new(destinations);
        let sending = Arc::new(Sending {
            ports: Arc::clone(&ports),
            container: settings.container.clone(),
            slow_lane: Arc::clone(&slow_lane),
            telemetry: Arc::clone(&telemetry),
        });
        let endings = Arc::new(Endings {
            ports: Arc::clone(&ports),
            sending: Arc::clone(&sending),
            telemetry: Arc::clone(&telemetry),
        });
        let notices = Arc::new(Notices { table: Arc::clone(&table), sending });
        let news = Arc::new(news::Exchange {
            ports: Arc::clone(&ports),
            table,
            destinations: Arc::clone(&destinations),
            notices,
            telemetry: Arc::clone(&telemetry),
            read_ms: Mutex::default(),
        });
        let attempts = Attempts {
            ports: Arc::clone(&ports),
            credentials,
            destinations: Arc::clone(&destinations),
            news: Arc::clone(&news),
            endings: Arc::clone(&endings),
            slow_lane,
            telemetry: Arc::clone(&telemetry),
        };
        let records = Records {
            ports: Arc::clone(&ports),
            default_topic: settings.default_topic.clone(),
            finished: Mutex::default(),
            endings: Arc::clone(&endings),
            telemetry: Arc::clone(&telemetry),
        };
        Self { ports, records, destinations, attempts, endings, news, telemetry, settings }
    }

    /// Returns the telemetry, for reporting the beginning and the end of an invocation.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Returns the metrics recorded since the last call, as EMF lines.
    pub fn metrics(&self) -> Vec<String> {
        self.telemetry.metrics(self.ports.now_ms())
    }

    /// Runs one piece of work and contains any panic. Unfinished items stay in the progress, and
    /// the acknowledging step re-enqueues them.
    pub(crate) async fn run(&self, work: Work, invocation: &Invocation<'_>) {
        let running = async {
            match work {
                Work::DeadLetter(item, letter) => {
                    self.endings.finish_dead_letter(invocation, item, &letter).await;
                }
                Work::Forward(item, queue, message) => {
                    let sent =
                        self.endings.sending.send(queue, *message, invocation.deadline).await;
                    invocation.progress.set_sent(item, sent);
                }
                Work::Deliver(group) => {
                    self.deliver(group, invocation).await;
                    self.destinations.return_permits(invocation).await;
                }
            }
        };
        // Boxed, so that the future types of the clients below do not nest without end.
        contained("deliver", running.boxed()).await;
        // Runs after a panic too. Otherwise late responses would be awaited as if work were left.
        invocation.active_work.one_less();
    }
}
