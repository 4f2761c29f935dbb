//! Schema transactions: changes through any node, refusals, races, busy tables, clients that die.

use super::cluster::{Cluster, changed, client, code, create, create_database, table};
use signals::ErrorCode;
use signals::TableId;
use signals::control::{DictAnswer, DictQuery, SchemaChange};
use signals::ids::SchemaVersion;

fn by_name(name: &str) -> DictQuery {
    DictQuery::TableByName { database: "test".into(), name: name.into() }
}

/// A cluster with the database `test`.
fn cluster(count: u8, seed: u64) -> Cluster {
    let mut c = Cluster::started(count, seed);
    c.change(count, create_database("test")).unwrap();
    c
}

#[test]
fn a_table_made_through_one_node_is_usable_through_all_when_the_client_hears_of_it() {
    for seed in 0..50 {
        let count = [1, 2, 4][seed as usize % 3];
        let mut c = cluster(count, seed);
        let maker = 1 + c.random(count as usize) as u8;
        let asker = client(200, 0);
        c.ask(maker, asker, 1, create("t"));
        while !c.answers.contains_key(&(asker, 1)) {
            assert!(c.step(), "no answer");
        }
        let (id, version) = changed(c.answers[&(asker, 1)].clone());
        for node in 1..=count {
            let Ok(DictAnswer::Table(info)) = c.query(node, by_name("t")) else { panic!("node {node}") };
            assert_eq!((info.def.id, info.def.version), (id, version));
            assert_eq!(info.map.partitions.len(), 2 * count as usize);
            assert_eq!(info.def.sql, [7]);
            assert_eq!(c.query(node, DictQuery::TableById(id)), Ok(DictAnswer::Table(info)));
        }
        c.assert_schema_equal();
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_its_reason() {
    let mut c = Cluster::new(2, 1);
    c.tables_max = 3;
    c.boot(1);
    c.boot(2);
    c.link_all();
    c.advance(50);
    c.change(2, create_database("test")).unwrap();
    let (id, version) = changed(c.change(2, create("t")));
    let refused = |c: &mut Cluster, change: SchemaChange| -> (u16, String) {
        let refusal = c.change(2, change).unwrap_err();
        (refusal.code.0, refusal.detail)
    };
    assert_eq!(refused(&mut c, create("t")).0, 721);
    assert_eq!(refused(&mut c, create_database("test")).0, 4719);
    assert_eq!(refused(&mut c, create_database("a/b")).0, 793);
    let elsewhere = SchemaChange::CreateTable(Box::new(table("nowhere", "t")));
    assert_eq!(refused(&mut c, elsewhere), (4718, "database \"nowhere\"".into()));
    assert_eq!(refused(&mut c, SchemaChange::DropDatabase { name: "nowhere".into() }).0, 4718);
    let (number, text) = refused(&mut c, SchemaChange::DropDatabase { name: "test".into() });
    assert_eq!(number, 4720);
    assert!(text.contains("\"t\""), "{text}");
    let mut everywhere = table("test", "u");
    everywhere.fully_replicated = true;
    let (number, text) = refused(&mut c, SchemaChange::CreateTable(Box::new(everywhere)));
    assert_eq!(number, 797);
    assert!(text.contains("not supported yet"), "{text}");
    let mut keyless = table("test", "u");
    keyless.primary_key.clear();
    assert_eq!(refused(&mut c, SchemaChange::CreateTable(Box::new(keyless))).0, 739);
    let mut large = table("test", "u");
    large.sql = vec![0; 250 << 10];
    assert_eq!(refused(&mut c, SchemaChange::CreateTable(Box::new(large))).0, 793);
    let old = SchemaVersion(version.0 + 1);
    assert_eq!(refused(&mut c, SchemaChange::DropTable { table: id, version: old }).0, 241);
    let gone = SchemaChange::TruncateTable { table: TableId(77), version };
    assert_eq!(refused(&mut c, gone).0, 709);
    changed(c.change(1, create("u")));
    let (number, text) = refused(&mut c, create("v"));
    assert_eq!(number, 707);
    assert!(text.contains("MaxNoOfTables allows 3"), "{text}");
    assert_eq!(code(c.query(1, by_name("v"))), ErrorCode::TABLE_NOT_FOUND);
    assert_eq!(code(c.query(1, DictQuery::TableById(TableId(77)))), ErrorCode::NO_SUCH_TABLE);
    assert_eq!(c.tables(1), ["test/t", "test/u"]);
    c.assert_schema_equal();
}

#[test]
fn a_node_that_cannot_take_the_table_undoes_it_everywhere() {
    for seed in 0..50 {
        let mut c = cluster(4, seed);
        c.set_full(3, true);
        let refusal = c.change(2, create("t")).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DATA_MEMORY_FULL);
        assert!(refusal.detail.contains("node 3"), "{}", refusal.detail);
        assert!(c.tables(1).is_empty());
        c.assert_schema_equal();
        c.set_full(3, false);
        changed(c.change(2, create("t")));
        c.assert_schema_equal();
    }
}

#[test]
fn of_clients_that_race_for_a_name_one_wins() {
    for seed in 0..100 {
        let mut c = cluster(2, seed);
        let (a, b) = (client(200, 0), client(200, 1));
        c.ask(1, a, 1, create("t"));
        c.ask(2, b, 1, create("t"));
        c.ask(1, a, 2, create("u"));
        c.ask(2, b, 2, create("v"));
        c.settle();
        let first = (c.answers[&(a, 1)].clone(), c.answers[&(b, 1)].clone());
        match first {
            (Ok(_), Err(refusal)) | (Err(refusal), Ok(_)) => {
                assert_eq!(refusal.code, ErrorCode::TABLE_EXISTS);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(c.tables(1), ["test/t", "test/u", "test/v"]);
        c.assert_schema_equal();
    }
}

#[test]
fn tables_are_dropped_and_ids_come_back_with_a_higher_version() {
    let mut c = cluster(2, 4);
    let (id, version) = changed(c.change(1, create("t")));
    c.change(2, SchemaChange::DropTable { table: id, version }).unwrap();
    assert!(c.tables(1).is_empty());
    assert_eq!(code(c.query(1, by_name("t"))), ErrorCode::TABLE_NOT_FOUND);
    let (next, _) = changed(c.change(1, create("t")));
    assert_ne!(next, id, "an id is used again as late as possible");
    c.assert_schema_equal();
    let (again, later) = {
        let mut catalog = super::super::dbdict::catalog::Catalog::default();
        let mut given = (TableId(0), SchemaVersion(0));
        for _ in 0..=signals::table::MAX_TABLES {
            given = catalog.next_id().unwrap();
            let mut def = table("test", "t");
            (def.id, def.version) = given;
            let map = signals::partition::PartitionMap { version: 1, buckets: vec![], partitions: vec![] };
            let info = signals::control::TableInfo { def, map };
            catalog.apply(&signals::peer::SchemaOp::CreateTable(Box::new(info)));
            catalog.apply(&signals::peer::SchemaOp::DropTable { table: given.0 });
        }
        given
    };
    assert_eq!((again, later), (TableId(1), SchemaVersion(2)));
}

#[test]
fn a_drop_waits_for_operations_in_progress() {
    let mut c = cluster(2, 5);
    let (id, version) = changed(c.change(1, create("t")));
    let asker = client(200, 0);
    c.set_busy(2, id, true);
    c.ask(1, asker, 1, SchemaChange::DropTable { table: id, version });
    c.advance(2000);
    assert!(c.answers.is_empty());
    c.set_busy(2, id, false);
    c.settle();
    assert_eq!(c.answers[&(asker, 1)], Ok(DictAnswer::Changed(None)));
    c.assert_schema_equal();
}

#[test]
fn a_drop_that_waits_too_long_is_given_up_and_the_table_stays_usable() {
    for seed in 0..30 {
        let mut c = cluster(2, seed);
        let (id, version) = changed(c.change(1, create("t")));
        let asker = client(200, 0);
        for (request, change) in [
            SchemaChange::DropTable { table: id, version },
            SchemaChange::TruncateTable { table: id, version },
        ]
        .into_iter()
        .enumerate()
        {
            c.set_busy(2, id, true);
            c.ask(1, asker, request as u32, change);
            c.advance(2500);
            let refusal = c.answers[&(asker, request as u32)].clone().unwrap_err();
            assert!(refusal.code.is_temporary());
            assert_eq!(refusal.code, ErrorCode::LOCK_WAIT_TIMEOUT);
            assert!(
                refusal.detail.contains("active transactions use the table on node 2"),
                "{}",
                refusal.detail
            );
            c.assert_schema_equal();
            c.set_busy(2, id, false);
        }
        c.change(2, SchemaChange::DropTable { table: id, version }).unwrap();
        assert!(c.tables(2).is_empty());
        c.assert_schema_equal();
    }
}

#[test]
fn a_truncated_table_is_a_new_one_under_the_old_name() {
    for seed in 0..30 {
        let mut c = cluster(4, seed);
        let (id, version) = changed(c.change(1, create("t")));
        let (new, _) = changed(c.change(3, SchemaChange::TruncateTable { table: id, version }));
        assert_ne!(new, id);
        let Ok(DictAnswer::Table(info)) = c.query(2, by_name("t")) else { panic!("no table") };
        assert_eq!((info.def.id, info.def.columns.len()), (new, 2));
        assert_eq!(code(c.query(2, DictQuery::TableById(id))), ErrorCode::NO_SUCH_TABLE);
        assert_eq!(c.tables(4), ["test/t"]);
        // A node without memory for the new one keeps the old.
        c.set_full(4, true);
        let version = info.def.version;
        let refusal = c.change(3, SchemaChange::TruncateTable { table: new, version }).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DATA_MEMORY_FULL);
        let Ok(DictAnswer::Table(same)) = c.query(2, by_name("t")) else { panic!("no table") };
        assert_eq!(same.def.id, new);
        c.assert_schema_equal();
    }
}

#[test]
fn a_client_that_dies_loses_its_answer_and_nothing_else() {
    let mut unfinished = 0;
    for seed in 0..200 {
        let mut c = cluster(2, seed);
        let (dying, living) = (client(200, 0), client(200, 1));
        for request in 0..3 {
            c.ask(2, dying, request, create(&format!("d{request}")));
            c.ask(1, living, request, create(&format!("l{request}")));
        }
        let steps = c.random(150);
        c.steps(steps);
        c.client_fails(2, dying);
        c.settle();
        for request in 0..3 {
            changed(c.answers[&(living, request)].clone());
            if !c.answers.contains_key(&(dying, request)) {
                unfinished += 1;
            }
        }
        // Whatever came of the dead client's changes, it is whole and the same everywhere.
        c.assert_schema_equal();
        let tables = c.tables(1);
        assert!(["test/l0", "test/l1", "test/l2"].iter().all(|t| tables.iter().any(|n| n == t)));
    }
    assert!(unfinished > 100, "the seeds reach clients that die in the middle");
}

#[test]
fn too_many_changes_at_once_are_refused_for_now() {
    let mut c = cluster(2, 6);
    let asker = client(200, 0);
    for request in 0..400 {
        c.ask(2, asker, request, create(&format!("t{request}")));
    }
    c.settle();
    let busy =
        c.answers.values().filter(|a| a.as_ref().is_err_and(|r| r.code == ErrorCode::DICT_BUSY)).count();
    let made = c.answers.values().filter(|a| a.is_ok()).count();
    assert_eq!(c.answers.len(), 400);
    assert!(busy > 0 && made >= 64, "{busy} {made}");
    assert_eq!(c.tables(1).len(), made);
    c.assert_schema_equal();
}

#[test]
fn random_changes_from_many_clients_leave_all_nodes_alike() {
    for seed in 0..60 {
        let mut c = cluster(4, seed);
        let mut request = 0;
        for _ in 0..40 {
            request += 1;
            let node = 1 + c.random(4) as u8;
            let asker = client(200, c.random(3) as u16);
            let name = ["a", "b", "c"][c.random(3)];
            let known = c.query(node, by_name(name));
            let change = match (c.random(4), known) {
                (0 | 1, Ok(DictAnswer::Table(info))) => {
                    SchemaChange::DropTable { table: info.def.id, version: info.def.version }
                }
                (2, Ok(DictAnswer::Table(info))) => {
                    SchemaChange::TruncateTable { table: info.def.id, version: info.def.version }
                }
                _ => create(name),
            };
            for again in 0..=c.random(2) as u32 {
                c.ask(node, asker, request * 10 + again, change.clone());
            }
            let full = c.random(8) == 0;
            c.set_full(node, full);
            let steps = c.random(120);
            c.steps(steps);
            if c.random(10) == 0 {
                c.client_fails(node, asker);
            }
        }
        c.settle();
        c.assert_schema_equal();
        assert!((1..=4).all(|n| c.running(n)));
    }
}

#[test]
fn long_lists_come_in_pages() {
    let mut c = Cluster::new(1, 7);
    c.tables_max = 1000;
    c.boot(1);
    c.advance(20);
    c.change(1, create_database("test")).unwrap();
    let long = "x".repeat(180);
    for i in 0..500 {
        changed(c.change(1, create(&format!("{i:04}{long}"))));
    }
    let (mut after, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let query = DictQuery::Tables { database: "test".into(), after: after.clone() };
        let Ok(DictAnswer::Tables { tables, more }) = c.query(1, query) else { panic!("no list") };
        pages += 1;
        after.clone_from(&tables.last().unwrap().0);
        seen.extend(tables.into_iter().map(|t| t.0));
        if !more {
            break;
        }
    }
    assert_eq!((seen.len(), pages), (500, 2));
    assert!(seen.is_sorted());
    let Ok(DictAnswer::Databases { databases, more: false }) =
        c.query(1, DictQuery::Databases { after: String::new() })
    else {
        panic!("no list")
    };
    let names: Vec<_> = databases.iter().map(|d| (d.name.as_str(), d.sql.as_slice())).collect();
    assert_eq!(names, [("mysql", &[][..]), ("test", &[33][..])]);
}
