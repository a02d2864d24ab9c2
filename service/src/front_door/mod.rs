//! The one place every request passes.
//!
//! A request is a value that moves, and each step is a type that only the step before can make:
//! arrived → identified → received → verified → located → admitted → routed → permitted → callable → answered. The order of checks
//! (REQ-1) is [`FrontDoor::pass`], read from top to bottom.
//!
//! Dropshot serves nothing here: its server answers unknown routes in its own shape, gives errors no request id, has no
//! middleware, and offers no bound on connections. What is generated calls the endpoints directly (`generated::calls`); the
//! generated trait is what the emitted document is compared with.

pub mod address;
mod admit;
mod answer;
pub mod arguments;
mod body;
mod budget;
pub mod envelope;
mod identify;
mod ip_limit;
pub mod pages;
pub mod paths;
mod prefer;
pub mod public;
pub mod record;
mod route;
mod sunset;
mod verify;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, Response};
use partner_api_signing::Environment;
use tracing::Instrument;
use uuid::Uuid;

pub use admit::Caller;
pub use budget::BodyBudget;
pub use ip_limit::IpLimit;

use crate::admission::{Admission, Standing};
use crate::context::Context;
use crate::directory::{Directory, Named};
use crate::error::ApiError;
use crate::generated::operations::Operation;
use crate::listener::RequestBody;
use crate::request_log::{Reason, Record, RequestLog};
use crate::rules::user_agent;
use crate::traces::{Stage, Traces, stage};
use address::TrustedProxies;
use route::Destination;

/// The path under which everything is signed.
pub const API_ROOT: &str = "/api/v1/partner";

/// Bytes of the largest admitted body: 1 MB (REQ-6).
pub const MAX_BODY_BYTES: usize = 1_048_576;

/// Bounds of the front door that an operator can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The deployment's environment.
    pub environment: Environment,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// The time in which a body must have arrived.
    pub body_timeout: Duration,
    /// The time in which a request must have been answered, from the body's end.
    pub request_timeout: Duration,
}

/// The front door's state.
pub struct FrontDoor {
    settings: Settings,
    ip_limit: IpLimit,
    body_budget: BodyBudget,
    directory: Arc<Directory>,
    admission: Admission,
    log: RequestLog,
}

/// What a front door holds in memory.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Requests that wait for admission.
    pub admission_waiting: usize,
    /// Bytes of bodies that nobody has proved to be theirs.
    pub unverified_bytes: usize,
}

impl FrontDoor {
    /// What it holds now.
    pub fn held(&self) -> Held {
        Held {
            admission_waiting: self.admission.waiting(),
            unverified_bytes: self.body_budget.held(),
        }
    }

    /// Whose request it is, by its peer and what proxies say that are believed.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.settings.trusted_proxies.client_address(peer, headers)
    }

    /// Notes a request that has its answer, whichever listener it came to: its line, its row, and what is counted.
    pub fn answered(&self, context: &Context, record: Record) {
        record::say(&record);
        context.instruments.answered(&record);
        self.log.push(record);
    }

    /// Puts the front door together.
    pub fn new(
        settings: Settings,
        ip_limit: IpLimit,
        directory: Arc<Directory>,
        admission: Admission,
        log: RequestLog,
    ) -> Self {
        FrontDoor {
            settings,
            ip_limit,
            body_budget: BodyBudget::default(),
            directory,
            admission,
            log,
        }
    }

    /// The order of checks.
    async fn pass(&self, context: &Context, arrived: Arrived) -> Result<Answered, Box<Refused>> {
        let arrived = self.ip_limit.check(arrived)?;
        if !route::is_signed(arrived.head.uri.path()) {
            return public::answer(context, arrived).await;
        }
        let identified = identify::identify(&self.directory, arrived)?;
        let receiving = body::receive(&self.body_budget, self.settings.body_timeout, identified);
        let received = stage(Stage::Body, receiving).await?;
        let verified = verify::signature(self.settings.environment, received)?;
        let so_far = verified.seen.clone();
        let located = verify::address(verified)?;
        let answered = async {
            let admitting = admit::admit(&self.directory, &self.admission, located);
            let admitted = stage(Stage::Admission, admitting).await?;
            let routed = match route::to_order(self.settings.environment, route::route(admitted)?)? {
                Ok(routed) => routed,
                Err(answered) => return Ok(answered),
            };
            let permitted = route::permission(routed)?;
            let callable = route::parameters(permitted)?;
            callable.call(context).await
        };
        // A panic is caught here, too, where it is known whose request it befell.
        let answered = answer::or_internal_error(answered, &so_far);
        match tokio::time::timeout(self.settings.request_timeout, answered).await {
            Ok(answered) => answered,
            Err(_) => Err(so_far.refused(ApiError::unavailable(Reason::RequestOverdue))),
        }
    }
}

/// Answers a request, whatever it is: the service of the listener.
pub async fn answer(context: Context, peer: SocketAddr, request: http::Request<RequestBody>) -> Response<Body> {
    let door = &context.front_door;
    let arrived = Arrived::new(&door.settings.trusted_proxies, peer, request);
    let seen = arrived.seen.clone();
    // Whatever is logged on the way names the request.
    let span = tracing::info_span!("request", request_id = %seen.request_id);
    let work = answer::or_internal_error(door.pass(&context, arrived), &seen).instrument(span);
    let (outcome, stages) = match context.traces {
        None => (work.await, None),
        Some(_) => {
            let (outcome, stages) = Traces::noting(work).await;
            (outcome, Some(stages))
        }
    };
    let (seen, error, response) = match outcome {
        Ok(Answered { seen, response }) => (seen, None, response),
        Err(refused) => {
            let response = refused.error.refusal().response(refused.seen.request_id);
            (refused.seen, Some((refused.error.code, refused.error.reason)), response)
        }
    };
    let response = answer::finished(response, &seen);
    let record = record::of(seen, &response, error);
    if let (Some(traces), Some(stages)) = (&context.traces, stages) {
        traces.tell(&record, stages);
    }
    door.answered(&context, record);
    response
}

/// What is known of a request so far: it goes along through all steps, and into the log.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The id under which the request is answered and logged. Ids of a moment stand together in the log's index: UUIDv7.
    pub request_id: Uuid,
    /// When its head had arrived.
    pub since: Instant,
    /// The method, `OTHER` for what is none of HTTP's, and the path's template, for the log.
    pub line: (&'static str, &'static str),
    /// What it says sent it, as far as the log looks at it.
    pub agent: Option<Arc<str>>,
    /// Bytes of its body that have arrived.
    pub received_bytes: u64,
    /// The client's address.
    pub address: IpAddr,
    /// Whose key it names, once that was looked up.
    pub named: Option<Named>,
    /// The operation that it asks for: of use to the caller only once it is admitted.
    pub operation: Option<&'static Operation>,
    /// Where it stands in its key's window, once it is counted.
    pub standing: Option<Standing>,
}

impl Seen {
    fn refused(self, error: ApiError) -> Box<Refused> {
        Box::new(Refused { seen: self, error })
    }
}

/// A request whose head has arrived.
pub(crate) struct Arrived {
    pub seen: Seen,
    pub destination: Destination,
    pub head: Parts,
    pub body: RequestBody,
}

impl Arrived {
    fn new(proxies: &TrustedProxies, peer: SocketAddr, request: http::Request<RequestBody>) -> Self {
        let (head, body) = request.into_parts();
        let destination = Destination::of(&head.method, head.uri.path());
        let agent = head.headers.get(http::header::USER_AGENT);
        let seen = Seen {
            request_id: Uuid::now_v7(),
            since: Instant::now(),
            line: (record::method(&head.method), destination.template()),
            agent: agent.and_then(|agent| user_agent::looked_at(agent.as_bytes())),
            received_bytes: 0,
            address: proxies.client_address(peer.ip(), &head.headers),
            named: None,
            operation: destination.operation(),
            standing: None,
        };
        Arrived {
            seen,
            destination,
            head,
            body,
        }
    }
}

/// A request that has its answer.
pub(crate) struct Answered {
    seen: Seen,
    response: Response<Body>,
}

/// A request that is refused, at whatever step.
pub(crate) struct Refused {
    seen: Seen,
    error: ApiError,
}
