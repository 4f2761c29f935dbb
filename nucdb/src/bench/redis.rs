//! compare-redis: flexAsynch beside redis-benchmark on the same machine, and how the two relate.
//!
//! Absolute figures drift with the machine's mood, ratios less. A redis-server of our own is started on a
//! private port of the loopback, in memory only and bounded, measured with `redis-benchmark -P 64 -c 8`,
//! and stopped again.

use super::BenchError;
use super::flexasynch;
use clap::Args;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `nucdb bench compare-redis`.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// flexAsynch's options
    #[command(flatten)]
    pub flexasynch: flexasynch::Options,
    /// Requests of redis-benchmark
    #[arg(long, default_value_t = 1_000_000)]
    pub redis_requests: u32,
}

/// A redis-server that is stopped when dropped.
struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    fn start() -> Result<Self, BenchError> {
        let outside = |what: &str, e: std::io::Error| BenchError::Outside(format!("{what}: {e}"));
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|l| l.local_addr())
            .map_err(|e| outside("no free port for redis-server", e))?
            .port();
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--maxmemory", "512mb", "--dir", &std::env::temp_dir().display().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| outside("redis-server cannot be started (is it installed?)", e))?;
        let mut redis = Self { process, port };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = redis.process.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                return Err(BenchError::Outside(format!("redis-server does not answer ({ended:?})")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(redis)
    }

    /// Requests per second of SET and GET.
    fn measure(&self, requests: u32) -> Result<(f64, f64), BenchError> {
        let output = Command::new("redis-benchmark")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-P", "64", "-c", "8", "-t", "set,get"])
            .args(["-n", &requests.to_string(), "-r", &requests.to_string(), "-d", "8", "--csv"])
            .output()
            .map_err(|e| BenchError::Outside(format!("redis-benchmark cannot be started: {e}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = |test: &str| rate_in_csv(&text, test);
        match (rate("SET"), rate("GET")) {
            (Some(set), Some(get)) => Ok((set, get)),
            _ => Err(BenchError::Outside(format!("redis-benchmark said no rates: {text}"))),
        }
    }
}

/// The second field of the line `"test","rate",...`.
fn rate_in_csv(text: &str, test: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let mut fields = line.split(',').map(|f| f.trim_matches('"'));
        if fields.next()? != test {
            return None;
        }
        fields.next()?.parse().ok()
    })
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs both and prints rates and ratios.
///
/// # Errors
/// Redis is not there, or flexAsynch failed.
pub fn run(options: &Options, print: &mut dyn FnMut(String)) -> Result<(), BenchError> {
    options.flexasynch.validate()?;
    let (set, get) = Redis::start()?.measure(options.redis_requests)?;
    print(format!("redis-benchmark -P 64 -c 8: SET {set:.0}/s GET {get:.0}/s"));
    let ours = flexasynch::run(&options.flexasynch, print)?;
    for (phase, rates, theirs, name) in [
        ("insert", &ours.insert, set, "SET"),
        ("update", &ours.update, set, "SET"),
        ("read", &ours.read, get, "GET"),
    ] {
        print(format!("{phase} / redis {name}: {:.2}", rates.average() / theirs));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found_in_either_form_of_the_csv() {
        let text =
            "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"500000.00\",\"0.9\"\n\"GET\",\"545000.50\"\n";
        assert_eq!(rate_in_csv(text, "SET"), Some(500_000.0));
        assert_eq!(rate_in_csv(text, "GET"), Some(545_000.5));
        assert_eq!(rate_in_csv(text, "INCR"), None);
    }
}
