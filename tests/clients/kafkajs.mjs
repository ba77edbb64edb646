// Assignments as kafkajs computes them: a state a line in, an answer a line out, as JSON.
// The first argument is the folder of node_modules. The first member leads.
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'

const require = createRequire(`${process.argv[2]}/`)
const assigner = require('kafkajs/src/consumer/assigners/roundRobinAssigner')
const { MemberAssignment } = require('kafkajs/src/consumer/assignerProtocol')

for await (const line of createInterface({ input: process.stdin })) {
  const state = JSON.parse(line)
  const cluster = {
    findTopicPartitionMetadata: topic =>
      Array.from({ length: state.topics[topic] ?? 0 }, (_, partitionId) => ({ partitionId })),
  }
  const members = state.members.map(member => ({ memberId: member.member_id }))
  const plan = await assigner({ cluster }).assign({ members, topics: state.members[0].topics })
  const assigned = {}
  for (const { memberId, memberAssignment } of plan) {
    const { topics } = state.members.find(member => member.member_id === memberId)
    const all = Object.entries(MemberAssignment.decode(memberAssignment).assignment)
    // The consumer drops what it does not subscribe to.
    assigned[memberId] = Object.fromEntries(all.filter(([topic]) => topics.includes(topic)))
  }
  console.log(JSON.stringify({ assigned }))
}
