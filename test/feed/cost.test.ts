import { describe, expect, it } from 'vitest'
import { endpoints, unitsOf } from '../../src/feed/cost.ts'

describe('the cost table', () => {
  it('is the documented one, endpoint by endpoint', () => {
    const instrument = '/api/v1/instruments/{instrument}'
    expect(endpoints.map(({ method, path, scope, units }) => [method, path, scope, units])).toEqual([
      ['GET', '/api/v1/instruments', 'api:instruments', 1],
      ['GET', instrument, 'api:instruments', 2],
      ['GET', '/api/v1/board', 'api:instruments', 1],
      ['GET', `${instrument}/prices`, 'api:prices', 2],
      ['GET', `${instrument}/indicators`, 'api:indicators', 5],
      ['GET', '/api/v1/screener/fields', 'api:screener', 1],
      ['GET', '/api/v1/screens', 'api:screener', 1],
      ['POST', '/api/v1/screener/run', 'api:screener', 25],
      ['GET', '/api/v1/filings', 'api:filings', 1],
      ['GET', `${instrument}/statements`, 'api:filings', 2],
      ['GET', '/api/v1/valuations', 'api:valuations', 1],
      ['GET', `${instrument}/valuations`, 'api:valuations', 2],
      ['GET', '/api/v1/macro', 'api:macro', 1],
      ['GET', '/api/v1/macro/series', 'api:macro', 1],
      ['GET', `${instrument}/ownership`, 'api:ownership', 5],
      ['GET', '/api/v1/alerts', 'api:alerts', 1],
      ['GET', '/api/v1/alerts/deliveries', 'api:alerts', 1],
    ])
  })

  it('has nine scopes', () => {
    expect(new Set(endpoints.map(({ scope }) => scope))).toHaveLength(9)
  })

  it('prices a call by its path', () => {
    expect(unitsOf('/api/v1/screener/run')).toBe(25)
    expect(unitsOf('/api/v1/alerts/deliveries')).toBe(1)
  })
})
