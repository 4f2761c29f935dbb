//! Planned stops.

use super::cluster::{Cluster, client, create, create_database};
use crate::mainrole::StartPhase;
use signals::ErrorCode;
use signals::control::StopScope;

/// All nodes ended, none of them as a failure.
fn assert_clean(c: &Cluster, count: u8) {
    for node in 1..=count {
        let (reason, error) =
            c.ended(node).unwrap_or_else(|| panic!("node {node} runs: {}", c.status(node).text));
        assert!(!error, "node {node}: {reason}");
        assert!(!c.events(node).iter().any(|e| e.contains("lost data node")), "{:?}", c.events(node));
    }
}

#[test]
fn a_cluster_stops_cleanly_whoever_is_ordered() {
    for seed in 0..200 {
        let count = [1, 2, 4][seed as usize % 3];
        let mut c = Cluster::started(count, seed);
        let ordered = if seed % 2 == 0 { count } else { 1 };
        for node in count + 1 - ordered..=count {
            c.stop(node, 5, StopScope::Cluster, false);
            let steps = c.random(10);
            c.steps(steps);
        }
        c.settle();
        assert_clean(&c, count);
        assert!(c.stops.values().all(Result::is_ok));
    }
}

#[test]
fn a_cluster_that_is_starting_stops_too() {
    for seed in 0..100 {
        let mut c = Cluster::new(4, seed);
        for node in 1..=4 {
            c.boot(node);
        }
        c.link_all();
        let steps = c.random(200);
        c.steps(steps);
        for node in 1..=4 {
            c.stop(node, 1, StopScope::Cluster, false);
        }
        c.settle();
        c.advance(4000);
        assert_clean(&c, 4);
    }
}

#[test]
fn clients_are_refused_while_the_cluster_stops() {
    let mut c = Cluster::started(2, 2);
    c.change(1, create_database("test")).unwrap();
    c.freeze(2, true);
    c.stop(1, 1, StopScope::Cluster, false);
    c.settle();
    assert_eq!(c.status(1).phase, StartPhase::Stopping);
    c.ask(1, client(200, 0), 4, create("t"));
    c.settle();
    assert_eq!(c.answers[&(client(200, 0), 4)].as_ref().unwrap_err().code, ErrorCode::CLUSTER_SHUTDOWN);
    c.advance(3_100);
    let (_, error) = c.ended(1).expect("a peer that does not answer is not waited for");
    assert!(!error);
    c.freeze(2, false);
    c.settle();
    assert!(!c.ended(2).expect("told").1);
}

#[test]
fn one_node_alone_is_stopped_only_where_it_ends_no_service() {
    let mut c = Cluster::started(2, 3);
    c.stop(1, 1, StopScope::Node, false);
    c.settle();
    let refusal = c.stops[&(1, 1)].clone().unwrap_err();
    assert_eq!(refusal.code, ErrorCode::MGM_REFUSED);
    assert!(refusal.detail.contains("SHUTDOWN"), "{}", refusal.detail);
    c.assert_started();

    c.stop(1, 2, StopScope::Node, true);
    c.settle();
    assert_eq!(c.stops[&(1, 2)], Ok(()));
    assert!(!c.ended(1).unwrap().1);
    let (reason, error) = c.ended(2).unwrap();
    assert!(error && reason.contains("data node 1 was stopped by order"), "{reason}");

    let mut c = Cluster::started(1, 3);
    c.stop(1, 1, StopScope::Node, false);
    c.settle();
    assert_eq!((c.stops[&(1, 1)].clone(), c.ended(1).unwrap().1), (Ok(()), false));
}

#[test]
fn a_node_stopped_while_starting_is_waited_for() {
    let mut c = Cluster::new(2, 6);
    c.boot(1);
    c.boot_with(2, |s| s.ldms = 3);
    c.link_all();
    c.advance(100);
    c.stop(2, 1, StopScope::Node, false);
    c.settle();
    assert!(!c.ended(2).unwrap().1);
    assert_eq!(c.status(1).phase, StartPhase::Connecting);
    c.boot(2);
    c.link_all();
    c.advance(100);
    c.assert_started();
}
