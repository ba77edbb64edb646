// A consumer of kafkajs, until standard input ends: NODE_MODULES ADDRESS GROUP TOPIC...
import { createRequire } from 'node:module'

const [modules, address, groupId, ...topics] = process.argv.slice(2)
const { Kafka, logLevel } = createRequire(`${modules}/`)('kafkajs')
const consumer = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }).consumer({ groupId })
await consumer.connect()
await consumer.subscribe({ topics })
await consumer.run({ eachMessage: async () => {} })
process.stdin.resume()
process.stdin.on('end', async () => {
  await consumer.disconnect()
  process.exit()
})
