/* Assignments as librdkafka computes them, called in its own sources: a state in, an answer out.
 *
 * A line a word and its values, between tabs:
 *   group   ASSIGNOR
 *   topic   NAME    COUNT   RACKS of each partition, "r1,r2", as many fields as partitions; or none
 *   member  ID      INSTANCE or -   RACK or -       GENERATION
 *   reads   TOPIC   (of the last member)
 *   owns    TOPIC   PARTITION
 *   end
 * Answered by "assigned MEMBER TOPIC PARTITION" lines and "end", or "crash" and "end".
 */
#include "rdkafka_cgrp.c" /* the adjustment of a cooperative plan is static */
#include "rdkafka_metadata.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 256

static rd_kafka_metadata_internal_t mdi;
static rd_kafka_metadata_topic_t topics[MOST];
static rd_kafka_metadata_topic_internal_t topics_internal[MOST];
static rd_kafka_metadata_broker_internal_t brokers[MOST];
static rd_kafka_group_member_t members[MOST];
static int topic_cnt, broker_cnt, member_cnt;

static char *fields[MOST];

static int split(char *line) {
        int n         = 0;
        char *begin   = line;
        line[strcspn(line, "\n")] = '\0';
        for (;;) {
                char *tab   = strchr(begin, '\t');
                fields[n++] = begin;
                if (!tab || n == MOST)
                        return n;
                *tab  = '\0';
                begin = tab + 1;
        }
}

static void note_rack(const char *rack) {
        for (int i = 0; i < broker_cnt; i++)
                if (!strcmp(brokers[i].rack_id, rack))
                        return;
        brokers[broker_cnt].id        = broker_cnt;
        brokers[broker_cnt++].rack_id = strdup(rack);
}

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_topic(int n) {
        int count                 = atoi(fields[2]);
        rd_kafka_metadata_topic_t *t = &topics[topic_cnt];
        rd_kafka_metadata_topic_internal_t *ti = &topics_internal[topic_cnt++];
        t->topic                  = strdup(fields[1]);
        t->partition_cnt          = count;
        t->partitions             = calloc(count + 1, sizeof(*t->partitions));
        ti->partitions            = calloc(count + 1, sizeof(*ti->partitions));
        for (int p = 0; p < count; p++) {
                rd_kafka_metadata_partition_internal_t *pi = &ti->partitions[p];
                t->partitions[p].id = pi->id = p;
                pi->racks           = calloc(16, sizeof(char *));
                if (n <= 3 + p)
                        continue;
                for (char *rack = strtok(strdup(fields[3 + p]), ","); rack;
                     rack       = strtok(NULL, ",")) {
                        pi->racks[pi->racks_cnt++] = rack;
                        note_rack(rack);
                }
                qsort(pi->racks, pi->racks_cnt, sizeof(char *), by_text);
        }
}

static rd_kafkap_str_t *text(const char *value, int is_empty) {
        return rd_kafkap_str_new(is_empty ? "" : value, -1);
}

static void add_member(void) {
        rd_kafka_group_member_t *m = &members[member_cnt++];
        m->rkgm_member_id          = text(fields[1], 0);
        m->rkgm_group_instance_id  = strcmp(fields[2], "-") ? text(fields[2], 0)
                                                           : rd_kafkap_str_new(NULL, -1);
        m->rkgm_rack_id      = text(fields[3], !strcmp(fields[3], "-"));
        m->rkgm_generation   = atoi(fields[4]);
        m->rkgm_subscription = rd_kafka_topic_partition_list_new(4);
        m->rkgm_owned        = rd_kafka_topic_partition_list_new(4);
        m->rkgm_assignment   = rd_kafka_topic_partition_list_new(4);
        rd_list_init(&m->rkgm_eligible, 0, NULL);
}

static void answer(const char *assignor) {
        char errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
        rd_kafka_conf_set(conf, "partition.assignment.strategy", assignor, NULL, 0);
        rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        const rd_kafka_assignor_t *rkas = rd_kafka_assignor_find(rk, assignor);
        mdi.metadata.topics     = topics;
        mdi.metadata.topic_cnt  = topic_cnt;
        mdi.metadata.broker_cnt = broker_cnt;
        mdi.topics              = topics_internal;
        mdi.brokers             = brokers;
        if (rd_kafka_assignor_run(rk->rk_cgrp, rkas, &mdi.metadata, members, member_cnt,
                                  errstr, sizeof(errstr)))
                abort();
        if (rkas->rkas_protocol == RD_KAFKA_REBALANCE_PROTOCOL_COOPERATIVE)
                rd_kafka_cooperative_protocol_adjust_assignment(rk->rk_cgrp, members, member_cnt);
        for (int i = 0; i < member_cnt; i++)
                for (int j = 0; j < members[i].rkgm_assignment->cnt; j++)
                        printf("assigned\t%s\t%s\t%d\n", members[i].rkgm_member_id->str,
                               members[i].rkgm_assignment->elems[j].topic,
                               members[i].rkgm_assignment->elems[j].partition);
        fflush(stdout);
}

int main(void) {
        char *line = NULL, assignor[64] = "";
        size_t size = 0;
        while (getline(&line, &size, stdin) > 0) {
                int n = split(line);
                if (!strcmp(fields[0], "group")) {
                        snprintf(assignor, sizeof(assignor), "%s", fields[1]);
                        topic_cnt = broker_cnt = member_cnt = 0;
                        memset(members, 0, sizeof(members));
                } else if (!strcmp(fields[0], "topic")) {
                        add_topic(n);
                } else if (!strcmp(fields[0], "member")) {
                        add_member();
                } else if (!strcmp(fields[0], "reads")) {
                        rd_kafka_topic_partition_list_add(
                            members[member_cnt - 1].rkgm_subscription, fields[1],
                            RD_KAFKA_PARTITION_UA);
                } else if (!strcmp(fields[0], "owns")) {
                        rd_kafka_topic_partition_list_add(members[member_cnt - 1].rkgm_owned,
                                                          fields[1], atoi(fields[2]));
                } else if (!strcmp(fields[0], "end")) {
                        int status = 0;
                        pid_t child;
                        fflush(stdout);
                        if (!(child = fork())) {
                                answer(assignor);
                                _exit(0);
                        }
                        waitpid(child, &status, 0);
                        puts(status ? "crash\nend" : "end");
                }
        }
        return 0;
}
