//! How a cluster starts, what hinders it, and what a lost node does to it.

use super::cluster::{Cluster, client, create, create_database};
use crate::mainrole::StartPhase;
use signals::control::{DictAnswer, DictQuery};
use signals::{ErrorCode, NodeId};

#[test]
fn one_node_starts_alone() {
    let mut c = Cluster::new(1, 1);
    c.boot(1);
    c.advance(20);
    c.assert_started();
    assert_eq!(c.status(1).group, Some(0));
}

#[test]
fn nodes_start_in_any_order_of_boots_links_and_signals() {
    for seed in 0..200 {
        let count = [2, 2, 4, 8][seed as usize % 4];
        let mut c = Cluster::new(count, seed);
        let mut waiting: Vec<u8> = (1..=count).collect();
        while !waiting.is_empty() {
            let next = c.random(waiting.len());
            c.boot(waiting.swap_remove(next));
            for _ in 0..count {
                let (a, b) = (1 + c.random(count as usize) as u8, 1 + c.random(count as usize) as u8);
                if a != b {
                    c.link(a, b);
                }
                let steps = c.random(20);
                c.steps(steps);
            }
        }
        c.link_all();
        c.settle();
        c.advance(20);
        c.assert_started();
        let groups = c.status(count).group;
        assert_eq!(groups, Some(u16::from((count - 1) / 2)));
    }
}

#[test]
fn the_status_names_who_is_waited_for_and_clients_are_told() {
    let mut c = Cluster::new(4, 7);
    for node in [1, 2, 4] {
        c.boot(node);
    }
    c.link_all();
    c.register(1, client(200, 0));
    c.advance(100);
    let status = c.status(1);
    assert_eq!(status.phase, StartPhase::Connecting);
    assert_eq!(status.text, "connecting: waiting for node 3: not connected");
    assert_eq!(status.connected, [NodeId(2), NodeId(4)]);
    let conf = &c.regs[&client(200, 0)];
    assert!(!conf.started);
    assert_eq!((conf.tcs, conf.ldms, conf.groups.len()), (2, 2, 2));
    let databases = DictQuery::Databases { after: String::new() };
    assert_eq!(c.query(1, databases).unwrap_err().code, ErrorCode::NODE_NOT_STARTED);

    c.boot(3);
    c.link(3, 1);
    c.link(3, 2);
    c.advance(100);
    assert_eq!(c.status(1).text, "connecting: waiting for nodes 3, 4: lacks links to other data nodes");
    c.link(3, 4);
    c.advance(100);
    c.assert_started();
    assert!(c.regs[&client(200, 0)].started, "told without asking again");
    assert!(c.status(1).generation > status.generation);
}

#[test]
fn a_node_lost_during_the_start_is_waited_for_again() {
    for seed in 0..400 {
        let mut c = Cluster::new(4, seed);
        for node in 1..=4 {
            c.boot(node);
        }
        c.link_all();
        for _ in 0..3 {
            let steps = c.random(150);
            c.steps(steps);
            let (a, b) = (1 + c.random(4) as u8, 1 + c.random(4) as u8);
            if c.random(2) == 0 {
                c.kill(a);
                let steps = c.random(60);
                c.steps(steps);
                c.boot(a);
            } else if a != b {
                c.cut(a, b);
            }
            let steps = c.random(60);
            c.steps(steps);
            c.link_all();
        }
        c.settle();
        c.advance(3000);
        if (1..=4).all(|n| c.running(n)) {
            c.assert_started();
            continue;
        }
        // It was started already: then nobody serves, and those that were started say why.
        for node in 1..=4 {
            match c.ended(node) {
                Some((reason, error)) => {
                    let says_why =
                        reason.contains("lost data node") || reason.contains("lost its link to another");
                    assert!(error && says_why, "{reason}");
                }
                None => assert_eq!(c.status(node).phase, StartPhase::Connecting, "seed {seed} node {node}"),
            }
        }
    }
}

#[test]
fn nodes_of_another_configuration_are_not_joined() {
    let mut c = Cluster::new(2, 5);
    c.boot(1);
    c.boot_with(2, |s| s.ldms = 4);
    c.link_all();
    c.advance(1000);
    for (node, other) in [(1, 2), (2, 1)] {
        let status = c.status(node);
        assert_eq!(status.phase, StartPhase::Connecting);
        assert!(
            status.text.contains(&format!("node {other}: runs with other node groups")),
            "{}",
            status.text
        );
    }
}

#[test]
fn a_started_node_that_loses_a_peer_stops_and_says_why() {
    let mut c = Cluster::started(4, 11);
    c.kill(3);
    c.settle();
    for node in [1, 2, 4] {
        let (reason, error) = c.ended(node).expect("stopped");
        assert!(error && reason.contains("data node"), "{reason}");
        assert!(reason.contains("must not serve"), "{reason}");
    }
    assert!((1..=4).any(|n| c.ended(n).is_some_and(|(r, _)| r.contains("lost data node 3 (closed)"))));
}

#[test]
fn a_silent_peer_is_cut_off_after_four_heartbeats() {
    let mut c = Cluster::started(2, 3);
    c.advance(20_000);
    c.assert_started();
    c.freeze(2, true);
    c.advance(4_000);
    assert!(c.running(1), "not before four heartbeats are missed");
    c.advance(1_000);
    let (reason, error) = c.ended(1).expect("stopped");
    assert!(error && reason.contains("lost data node 2"), "{reason}");
    assert!(c.events(1).iter().any(|e| e.contains("no heartbeat for")));
}

#[test]
fn a_node_that_was_stalled_itself_blames_nobody() {
    let mut c = Cluster::started(2, 4);
    c.register(1, client(200, 0));
    c.settle();
    c.skip(60_000);
    c.advance(500);
    assert!(c.running(1) && c.running(2));
    assert!(c.events(1).iter().any(|e| e.contains("was stalled for 60010 ms")), "{:?}", c.events(1));
    assert!(c.disconnected.is_empty());
}

#[test]
fn clients_that_fall_silent_are_disconnected_and_their_failure_reaches_everybody() {
    let mut c = Cluster::started(2, 8);
    let (loud, silent) = (client(200, 0), client(200, 1));
    c.register(1, loud);
    c.register(1, silent);
    for _ in 0..5 {
        c.advance(500);
        c.register(1, loud);
    }
    assert_eq!(c.disconnected, [silent]);
    c.client_fails(1, silent);
    c.settle();
    assert_eq!(c.failed_clients(1), vec![vec![silent]; 4]);
    assert_eq!(c.failed_clients(2), vec![vec![]; 4]);
    c.disconnected.clear();
    c.advance(1000);
    assert!(c.disconnected.is_empty());
}

#[test]
fn epochs_go_on_alike_on_all_nodes() {
    let mut c = Cluster::started(4, 9);
    let first = c.epochs(1)[0];
    c.advance(1000);
    let later = c.epochs(1)[0];
    assert!(later >= first + 9, "ten micro-epochs a second");
    for node in 1..=4 {
        assert!(c.epochs(node).iter().all(|e| *e == later), "{:?}", c.epochs(node));
    }
    c.advance(2000);
    assert!(c.epochs(2)[1] >> 32 > first >> 32, "a GCI every two seconds");
}

#[test]
fn the_system_tables_stand_at_the_start_and_stay() {
    let mut c = Cluster::started(2, 10);
    let query = DictQuery::TableByName { database: "mysql".into(), name: "ndb_autoincrement".into() };
    for node in 1..=2 {
        let Ok(DictAnswer::Table(info)) = c.query(node, query.clone()) else { panic!("no table") };
        assert_eq!(info.def.columns[1].name, "next_value");
        let (table, version) = (info.def.id, info.def.version);
        for change in [
            signals::control::SchemaChange::DropTable { table, version },
            signals::control::SchemaChange::TruncateTable { table, version },
            signals::control::SchemaChange::DropDatabase { name: "mysql".into() },
        ] {
            assert_eq!(c.change(node, change).unwrap_err().code, ErrorCode::PARAMETER_ERROR);
        }
    }
    c.change(1, create_database("test")).unwrap();
    c.change(2, create("t")).unwrap();
    c.assert_schema_equal();
}
