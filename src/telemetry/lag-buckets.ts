/** Seconds from firing to seen or acknowledged: from one poll to hours of outage. */
export const lagBuckets = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600]
/** Of a quantile that lies there, only this much is known. */
export const lagSecondsMax = Math.max(...lagBuckets)
