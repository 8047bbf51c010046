//! What an object store does with a request: [`StoreSheet`].
//!
//! Invariant: each figure names where it was published.

use std::time::Duration;

use crate::seed::Random;

/// A store, by its published figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreSheet {
    /// What it is called.
    pub name: &'static str,
    /// From a request to its first byte: half of them are faster.
    pub first_byte: Duration,
    /// The same for 99 of 100; equal to the other where there is no chance in it.
    pub slow_first_byte: Duration,
    /// Bytes a second of one request.
    pub request_rate: u64,
    /// Bytes a second of all answers together; `None` where that is nobody's limit.
    pub total_rate: Option<u64>,
    /// Requests that it begins in a second, of one cluster.
    pub requests_a_second: u64,
    /// Dollars for a thousand requests for contents.
    pub get_price: f64,
    /// Dollars for a thousand requests for names.
    pub list_price: f64,
    /// Dollars for 2^30 bytes that are read within the region.
    pub retrieval_price: f64,
}

impl StoreSheet {
    /// S3 Standard.
    ///
    /// Sources: Durner, Leis and Neumann, "Exploiting Cloud Object Storage for High-Performance Analytics", VLDB 16 (2023): about 30 ms
    /// to the first byte and 20 ms for each MiB of one request; "Best practices design patterns: optimizing Amazon S3 performance": 5,500
    /// GET a second for each partitioned prefix, and 100 to 200 ms to the first byte, between which the slow ones are put here; S3's
    /// prices of us-east-1.
    pub fn s3_standard() -> Self {
        Self {
            name: "S3 Standard",
            first_byte: Duration::from_millis(30),
            slow_first_byte: Duration::from_millis(150),
            request_rate: 50 << 20,
            total_rate: None,
            requests_a_second: 5_500,
            get_price: 0.0004,
            list_price: 0.005,
            retrieval_price: 0.0,
        }
    }

    /// S3 Express One Zone: "single-digit millisecond" latency, for a higher price of requests.
    ///
    /// Sources: the user guide of S3, "S3 Express One Zone", for latency and 200,000 reads a second of a bucket; the FAQ of S3 for its
    /// prices of us-east-1, with that of each byte read. What slow requests take and one request's rate are not published: 15 ms are
    /// assumed, and the rate of S3 Standard is taken.
    pub fn s3_express() -> Self {
        Self {
            name: "S3 Express One Zone",
            first_byte: Duration::from_millis(5),
            slow_first_byte: Duration::from_millis(15),
            requests_a_second: 200_000,
            get_price: 0.000_03,
            list_price: 0.001_13,
            retrieval_price: 0.000_6,
            ..Self::s3_standard()
        }
    }

    /// Google Cloud Storage, Standard.
    ///
    /// Sources: "Request rate and access distribution guidelines": 5,000 reads a second of a bucket before it grows; its prices. Latency
    /// and rate of a request as of S3 in the paper, which finds the three clouds alike.
    pub fn gcs_standard() -> Self {
        Self { name: "Google Cloud Storage", requests_a_second: 5_000, ..Self::s3_standard() }
    }

    /// Azure Blob Storage, hot, locally redundant.
    ///
    /// Sources: "Scalability and performance targets for standard storage accounts": 40,000 requests a second and 200 Gbit/s out of an
    /// account in large regions; its prices. Latency and rate of a request as of S3 in the paper.
    pub fn azure_hot() -> Self {
        Self {
            name: "Azure Blob Storage",
            requests_a_second: 40_000,
            total_rate: Some(25_000_000_000),
            get_price: 0.0005,
            ..Self::s3_standard()
        }
    }

    /// The server of the benchmark: each answer waits for so long, and all together come at this rate.
    pub fn test_bucket(latency: Duration, rate: u64) -> Self {
        Self {
            name: "pagemill-testbucket",
            first_byte: latency,
            slow_first_byte: latency,
            request_rate: u64::MAX,
            total_rate: Some(rate),
            requests_a_second: u64::MAX,
            ..Self::s3_standard()
        }
    }

    /// One request's time to its first byte: log-normal, through both figures.
    pub(crate) fn draw_first_byte(&self, random: &mut Random) -> Duration {
        let median = self.first_byte.as_secs_f64();
        let spread = (self.slow_first_byte.as_secs_f64() / median).ln() / NINETY_NINTH;
        if spread <= 0.0 || median == 0.0 {
            return self.first_byte;
        }
        Duration::from_secs_f64(median * (spread * normal(random)).exp())
    }
}

/// How many standard deviations above the mean 99 of 100 numbers are.
const NINETY_NINTH: f64 = 2.326_347_9;

/// A number of the normal distribution (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, angle) = (unit(random.draw()), unit(random.draw()));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_requests_are_faster_than_the_median_and_one_in_a_hundred_is_slow() {
        let (sheet, mut random) = (StoreSheet::s3_standard(), Random::new(1));
        let drawn: Vec<Duration> =
            (0..20_000).map(|_| sheet.draw_first_byte(&mut random)).collect();
        let share = |limit| drawn.iter().filter(|time| **time > limit).count() as f64 / 20_000.0;
        assert!((share(sheet.first_byte) - 0.5).abs() < 0.02, "{}", share(sheet.first_byte));
        assert!((share(sheet.slow_first_byte) - 0.01).abs() < 0.003);
        let exact = StoreSheet::test_bucket(Duration::from_millis(30), 1);
        assert_eq!(exact.draw_first_byte(&mut random), Duration::from_millis(30));
    }
}
