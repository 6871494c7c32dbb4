import type { Listing } from '../market.ts'
import { holdingsOf, latestQuarter, type Quarter, shareCountOf, sumOf } from './figures.ts'
import type { Scene } from './scene.ts'
import { chance } from './sessions.ts'

/** The screener's readings of a company, by its figures and its price. What would divide by zero or by a loss is absent. */
export function companyReadings(of: Listing, { seed, nowMs }: Scene, last: number): Record<string, number> {
  const trait = (use: number) => chance(seed, of.id, 0, use)
  const quarter = latestQuarter(of, seed, nowMs)
  const year = sumOf(of, seed, quarter, 4)
  const yearBefore = sumOf(of, seed, quarter - 4, 4)
  const threeBefore = sumOf(of, seed, quarter - 12, 4)
  const shares = shareCountOf(of, seed)
  const cap = shares * last
  const { revenue, grossProfit, operatingProfit, financeCosts, netProfit, operatingCashFlow, capex } = year
  const cost = revenue - grossProfit
  const taxed = operatingProfit - financeCosts
  const ebitda = operatingProfit + revenue * 0.03
  // Assets are equity and liabilities, so that every ratio of the balance sheet follows from a few of its lines.
  const equity = revenue * (0.5 + trait(70))
  const liabilities = equity * (0.4 + 1.4 * trait(71))
  const assets = equity + liabilities
  const current = assets * (0.3 + 0.4 * trait(72))
  const currentLiabilities = liabilities * (0.5 + 0.4 * trait(73))
  const cash = current * 0.12
  const shortTerm = current * 0.1
  const inventory = current * 0.35
  const receivables = current * 0.3
  const payables = currentLiabilities * 0.4
  const debt = liabilities * 0.35
  const netDebt = debt - cash - shortTerm
  const value = cap + netDebt
  const retained = equity * (0.5 - 0.6 * trait(74))
  const paidDividends = Math.max(0, netProfit) * (0.3 + 0.6 * trait(75))
  const borrowing = debt * 0.05
  const fcff = operatingCashFlow + financeCosts * 0.8 - capex
  const fcfe = operatingCashFlow - capex + borrowing
  const eps = netProfit / shares
  const positive = (value: number) => (value > 0 ? value : Number.NaN)
  const percent = (part: number, whole: number) => (part / positive(whole)) * 100
  const days = (part: number, flow: number) => (part / positive(flow)) * 365
  const pe = last / positive(eps)
  const sectorPe = 5 + (of.industry?.length ?? 0) / 5
  const working = (current - currentLiabilities) / assets
  const z =
    -4.3 - (4.5 * netProfit) / assets + (5.7 * liabilities) / assets - (0.004 * current) / currentLiabilities
  const holdings = holdingsOf(of, seed)
  const registered = holdings.reduce((sum, each) => sum + each, 0)
  return {
    market_cap: cap,
    share_count: shares,
    free_float: 100 - registered,
    eps,
    eps_ttm: eps,
    pe,
    pe_ttm: pe,
    ps: cap / revenue,
    ps_ttm: cap / revenue,
    pb: cap / equity,
    sector_pe: sectorPe,
    pe_to_sector: pe / sectorPe,
    percentile_value: Math.max(1, 100 - pe * 4),
    percentile_profitability: Math.min(99, Math.max(1, percent(netProfit, equity) * 2)),
    percentile_growth: Math.min(99, Math.max(1, 50 + (revenue / yearBefore.revenue - 1) * 100)),
    book_value_per_share: equity / shares,
    revenue_ttm: revenue,
    net_profit_ttm: netProfit,
    gross_profit_ttm: grossProfit,
    operating_profit_ttm: operatingProfit,
    profit_before_tax_ttm: taxed,
    finance_costs_ttm: financeCosts,
    ebitda_ttm: ebitda,
    gross_margin: percent(grossProfit, revenue),
    operating_margin: percent(operatingProfit, revenue),
    net_margin: percent(netProfit, revenue),
    roe: percent(netProfit, equity),
    roa: percent(netProfit, assets),
    roic: percent(operatingProfit * 0.85, equity + debt),
    total_assets: assets,
    total_equity: equity,
    total_liabilities: liabilities,
    current_assets: current,
    current_liabilities: currentLiabilities,
    cash,
    interest_bearing_debt: debt,
    short_term_investments: shortTerm,
    long_term_investments: assets * 0.08,
    ppe: (assets - current) * 0.7,
    intangible_assets: (assets - current) * 0.03,
    inventory,
    trade_receivables: receivables,
    trade_payables: payables,
    cost_of_sales_ttm: cost,
    net_debt: netDebt,
    enterprise_value: value,
    ev_sales: value / revenue,
    ev_ebit: value / positive(operatingProfit),
    ev_ebitda: value / positive(ebitda),
    p_fcff: cap / positive(fcff),
    p_fcfe: cap / positive(fcfe),
    p_dividend: cap / positive(paidDividends),
    dividend_yield: percent(paidDividends, cap),
    payout_ratio: percent(paidDividends, netProfit),
    asset_turnover: revenue / assets,
    inventory_turnover: cost / inventory,
    receivable_turnover: revenue / receivables,
    payable_turnover: cost / payables,
    days_inventory: days(inventory, cost),
    days_receivable: days(receivables, revenue),
    days_payable: days(payables, cost),
    cash_conversion_cycle: days(inventory, cost) + days(receivables, revenue) - days(payables, cost),
    debt_to_assets: debt / assets,
    debt_to_equity: debt / equity,
    liabilities_to_assets: liabilities / assets,
    liabilities_to_equity: liabilities / equity,
    equity_ratio: equity / assets,
    interest_coverage: operatingProfit / positive(financeCosts),
    net_debt_to_ebitda: netDebt / positive(ebitda),
    current_ratio: current / currentLiabilities,
    quick_ratio: (current - inventory) / currentLiabilities,
    cash_ratio: (cash + shortTerm) / currentLiabilities,
    retained_earnings: retained,
    gross_profitability: grossProfit / assets,
    accruals: (netProfit - operatingCashFlow) / assets,
    earnings_yield: percent(netProfit, cap),
    earnings_yield_ttm: percent(netProfit, cap),
    return_on_capital: percent(operatingProfit, assets - currentLiabilities),
    altman_z2:
      6.56 * working +
      (3.26 * retained) / assets +
      (6.72 * operatingProfit) / assets +
      (1.05 * equity) / liabilities,
    springate:
      1.03 * working +
      (3.07 * operatingProfit) / assets +
      (0.66 * taxed) / currentLiabilities +
      (0.4 * revenue) / assets,
    zmijewski: z,
    zmijewski_probability: 1 / (1 + Math.exp(-z)),
    grover: 1.65 * working + (3.404 * operatingProfit) / assets - (0.016 * netProfit) / assets + 0.057,
    ohlson:
      -1.32 -
      0.407 * Math.log10(assets / 1e12) +
      (6.03 * liabilities) / assets -
      1.43 * working +
      (0.0757 * currentLiabilities) / current -
      (2.37 * netProfit) / assets,
    accumulated_loss_ratio: Math.max(0, -retained) / equity,
    operating_cash_flow_ttm: operatingCashFlow,
    capex_ttm: capex,
    dividends_paid_ttm: paidDividends,
    interest_paid_ttm: financeCosts * 0.9,
    dps_ttm: paidDividends / shares,
    price_to_cash_flow: cap / positive(operatingCashFlow),
    net_borrowing_ttm: borrowing,
    fcff,
    fcfe,
    free_cash_flow: operatingCashFlow - capex,
    ocf_to_revenue: percent(operatingCashFlow, revenue),
    ocf_to_net_profit: operatingCashFlow / positive(netProfit),
    capex_to_revenue: percent(capex, revenue),
    ocf_per_share: operatingCashFlow / shares,
    fcf_yield: percent(operatingCashFlow - capex, cap),
    ...growth('qoq', sumOf(of, seed, quarter, 1), sumOf(of, seed, quarter - 1, 1)),
    ...growth('yoy', sumOf(of, seed, quarter, 1), sumOf(of, seed, quarter - 4, 1)),
    ...growth('annual', year, yearBefore),
    eps_growth_yoy: percent(netProfit - yearBefore.netProfit, yearBefore.netProfit),
    revenue_cagr_3y: ((revenue / threeBefore.revenue) ** (1 / 3) - 1) * 100,
    net_profit_cagr_3y: ((positive(netProfit) / positive(threeBefore.netProfit)) ** (1 / 3) - 1) * 100,
    largest_holder_percent: holdings[0] ?? 0,
    registered_percent: registered,
    holder_count: holdings.length,
    holder_hhi: holdings.reduce((sum, each) => sum + each ** 2, 0),
    register_float_gap: 0,
    board_change_days: Math.floor(trait(76) * 700),
    interlock_count: Math.floor(trait(77) * 4),
  }
}

/** The change since the period before: in percent and in rial; of margins, in percentage points. */
function growth(name: string, now: Quarter, before: Quarter): Record<string, number> {
  const lines = {
    revenue: 'revenue',
    gross_profit: 'grossProfit',
    operating_profit: 'operatingProfit',
    net_profit: 'netProfit',
  } as const
  const margin = (of: Quarter, line: keyof Quarter) => (of[line] / of.revenue) * 100
  return Object.fromEntries(
    Object.entries(lines).flatMap(([key, line]): [string, number][] => [
      [`${key}_growth_${name}`, before[line] > 0 ? (now[line] / before[line] - 1) * 100 : Number.NaN],
      [`${key}_change_${name}`, now[line] - before[line]],
      ...(line === 'revenue'
        ? []
        : [
            [
              `${key.replace('_profit', '')}_margin_change_${name}`,
              margin(now, line) - margin(before, line),
            ] as [string, number],
          ]),
    ]),
  )
}
