import type { Dispatcher } from 'undici'

/** The library reads on what a proxy that was to forward a request answers with a 407, after it was reported as an error: for ever, without an end. */
export const endRefused: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  let isOver = false
  let started: Dispatcher.DispatchController | undefined
  return dispatch(options, {
    ...passedTo(handler),
    onRequestStart(controller, context) {
      started = controller
      handler.onRequestStart?.(controller, context)
    },
    onResponseError(controller, error) {
      if (isOver) return
      isOver = true
      handler.onResponseError?.(controller, error)
      // Where the proxy cannot be reached, nothing has started, and `controller` is undefined whatever its type says.
      if (started?.aborted === false) started.abort(error)
    },
  })
}

/** Through a tunnel of a proxy, it starts when the tunnel is open. */
export const saysStart =
  (onSending: () => void): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) =>
    dispatch(options, {
      ...passedTo(handler),
      onRequestStart(...given) {
        onSending()
        handler.onRequestStart?.(...given)
      },
    })

function passedTo(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  return {
    onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
    onResponseStart: (...given) => handler.onResponseStart?.(...given),
    onResponseData: (...given) => handler.onResponseData?.(...given),
    onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
    onResponseError: (...given) => handler.onResponseError?.(...given),
  }
}
