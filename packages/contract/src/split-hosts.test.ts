import { expect, test } from '@jest/globals'
import { splitHosts } from './split-hosts.ts'

test('a URL with several hosts becomes one URL for each', () => {
  expect(splitHosts('postgres://ada:a%2Cb@one:5432,two/name?sslmode=require')).toEqual([
    'postgres://ada:a%2Cb@one:5432/name?sslmode=require',
    'postgres://ada:a%2Cb@two/name?sslmode=require',
  ])
  expect(splitHosts('amqp://one, [::1]:5673')).toEqual(['amqp://one', 'amqp://[::1]:5673'])
})

test('a URL with one host, and a text that is no URL, stay as they are', () => {
  expect(splitHosts('postgres://one/name?options=a,b')).toEqual(['postgres://one/name?options=a,b'])
  expect(splitHosts('no url, at all')).toEqual(['no url, at all'])
})
