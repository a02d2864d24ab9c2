//! The rules of the contract as pure types and functions, without I/O.

pub mod axle;
pub mod branch_code;
pub mod byte_range;
pub mod cursor;
pub mod dyno;
pub mod etag;
pub mod fold;
pub mod grants;
pub mod id;
pub mod inspector_token;
pub mod newer;
pub mod pdf_key;
pub mod personal;
pub mod plate;
pub mod plausible;
pub mod privacy;
pub mod report_link;
pub mod score;
pub mod scrub;
#[cfg(test)]
mod strategies;
pub mod template;
mod text_enum;
pub mod threshold;
pub mod user_agent;
pub mod vocabulary;
