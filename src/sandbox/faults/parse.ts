import { isMapping } from '../../alert/json/json.ts'
import { endpoints, nameOf } from '../../feed/endpoints.ts'
import { UserError } from '../../lib/errors.ts'
import { type FieldType, faultKinds, type InjectedFault, shapes } from './faults.ts'

const commonFields: Readonly<Record<string, FieldType>> = {
  'times?': 'number',
  'after?': 'number',
  'page?': 'number',
  'endpoint?': 'string',
}

/** What one entry of `between` may be: its fields, each a number but for the row of `insert`. */
const changes = [['fire'], ['insert', 'at'], ['insertAlerts', 'at'], ['remove'], ['removeAt']] as const

/** A fault from JSON; throws a UserError that says what is wrong with it. */
export function parseFault(value: unknown): InjectedFault {
  const fields = asFields(value)
  const kind = String(fields['kind'])
  if (!isKind(kind)) throw new UserError(`kind must be one of ${Object.keys(faultKinds).join(', ')}`)
  const wanted = { ...faultKinds[kind].fields, ...commonFields }
  for (const [name, type] of Object.entries(wanted)) {
    const bare = name.replace('?', '')
    const given = fields[bare]
    if (given === undefined && name !== bare) continue
    if (typeOf(given) !== type) throw new UserError(`${kind}: ${bare} must be a ${type}`)
    if (typeof given === 'number' && given < 0) throw new UserError(`${kind}: ${bare} must not be negative`)
  }
  const known = ['kind', ...Object.keys(wanted).map((name) => name.replace('?', ''))]
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new UserError(`${kind}: ${unknown} is unknown; known are ${known.join(', ')}`)
  checkValues(kind, fields)
  return { ...fields, kind } as unknown as InjectedFault
}

function checkValues(kind: InjectedFault['kind'], fields: Readonly<Record<string, unknown>>): void {
  const names = endpoints.map(({ path }) => nameOf(path))
  const { endpoint } = fields
  if (endpoint !== undefined && !names.some((each) => each === endpoint))
    throw new UserError(`endpoint must be one of ${names.join(', ')}`)
  if (kind === 'shape' && !shapes.some((each) => each === fields['shape']))
    throw new UserError(`shape must be one of ${shapes.join(', ')}`)
  if (kind === 'status' && !(Number(fields['status']) >= 200 && Number(fields['status']) <= 599))
    throw new UserError('status must be from 200 to 599')
  if (kind === 'between' && !(fields['changes'] as unknown[]).every(isChange))
    throw new UserError(
      `each of changes must be one of ${changes.map((names) => names.join(' + ')).join(', ')}`,
    )
}

function isChange(value: unknown): boolean {
  const fields = asFields(value)
  const names = Object.keys(fields).sort().join()
  return changes.some(
    (wanted) =>
      wanted.toSorted().join() === names &&
      wanted.every(
        (name) => name === 'insert' || (Number.isInteger(fields[name]) && Number(fields[name]) >= 0),
      ),
  )
}

function isKind(text: string): text is InjectedFault['kind'] {
  return Object.hasOwn(faultKinds, text)
}

function asFields(value: unknown): Readonly<Record<string, unknown>> {
  return isMapping(value) ? value : {}
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'list'
  return value === null ? 'null' : typeof value
}
