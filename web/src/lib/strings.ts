/** Every word the page says. Text from nodes is never among them and is only ever rendered as text. */
import type { Trouble } from "./stream";
import type { DeviceState, NodeState, NodeWay } from "./types";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

export const strings = {
  product: "gpuherd",
  unknownValue: "–",
  unknownUser: "unknown user",
  unknownName: "unnamed",

  title: {
    live: (free: number): string => `${free} free · gpuherd`,
    notLive: "not live · gpuherd",
    connecting: "gpuherd",
  },

  deviceState: {
    free: "free",
    busy: "busy",
    held: "held idle",
    booked: "booked",
    fault: "fault",
    stale: "stale",
    offline: "offline",
    unknown: "unknown",
  } satisfies Record<DeviceState, string>,

  nodeState: {
    live: "live",
    stale: "stale",
    offline: "offline",
    never: "never reported",
  } satisfies Record<NodeState, string>,

  way: {
    push: "its agent, which reports",
    pull: "its agent, which is asked",
    ssh: "SSH",
    file: "dropped files",
    gpustat: "gpustat (old protocol)",
    node_info: "node_info (old protocol)",
    xmlrpc: "XML-RPC (old protocol)",
  } satisfies Record<NodeWay, string>,

  notices: {
    label: "Notices",
    more: (count: number): string => plural(count, "more notice", "more notices"),
  },

  connection: {
    label: "Connection to the hub",
    connecting: "connecting",
    live: "live",
    reconnecting: "reconnecting",
    notLive: "not live",
  },

  banner: {
    title: (age: string): string => `Not live: this is how things were ${age} ago.`,
    trouble: {
      closed: "The connection to the hub is lost; trying again.",
      silent: "The hub has gone silent; waiting for it.",
      gap: "A message was missed; asking the hub for everything anew.",
      unreadable: "The hub sent something this page cannot read. Reload the page if this stays.",
      slept: "This device slept or its clock was set; asking the hub for everything anew.",
    } satisfies Record<Trouble, string>,
  },

  start: {
    connecting: "Connecting to the hub …",
    notConnected: "Not connected to the hub",
    noNodes: "No nodes yet",
    noNodesHint:
      "A node is a machine that runs the gpuherd agent. Make a join token on the hub, put it into a file on the GPU machine, and start the agent there:",
    tryDemo: "Or look at a simulated herd first:",
  },

  commands: {
    token: "gpuherd hub token create",
    agent: (hub: string): string => `gpuherd agent --hub ${hub} --join-token-file token.txt`,
    demo: "make demo",
  },

  summary: {
    label: "Totals",
    devices: (count: number): string => plural(count, "GPU", "GPUs"),
    nodes: (count: number): string => plural(count, "node", "nodes"),
    nodesAway: (count: number): string => `${count} not live`,
    freeByModel: "Free by model",
    freeOf: (free: number, total: number): string => `${free} of ${total} free`,
    modelMix: (parts: string): string => `States: ${parts}`,
    none: "No GPU has been reported yet.",
  },

  nodes: {
    heading: "Nodes",
    expandAll: "Expand all",
    collapseAll: "Collapse all",
    toggle: (name: string): string => `Details of ${name}`,
    wasLive: "was live",
    free: (count: number): string => `${count} free`,
    noGpu: "no GPU",
    lastContact: (age: string): string => `${age} ago`,
    noContact: "no contact yet",
    contactTitle: (when: string): string => `Last report: ${when}`,
    cpu: "CPU",
    memory: "RAM",
    disk: "Disk",
    users: "Users",
    moreUsers: (count: number): string => `+${count}`,
    moreProblems: (count: number): string => `+${count} more`,
    devicesOf: (name: string): string => `GPUs of ${name}`,
  },

  facts: {
    label: "About this node",
    driver: "Driver",
    cuda: "CUDA",
    os: "OS",
    kernel: "Kernel",
    cpu: "CPU",
    threads: (count: number): string => plural(count, "thread", "threads"),
    memory: "Memory",
    swap: "Swap",
    load: "Load",
    uptime: "Up",
    addresses: "Addresses",
    agent: "Agent",
    way: "Reached by",
    interval: "Reports every",
    skew: "Clock",
    skewAhead: (by: string): string => `${by} ahead of the hub`,
    skewBehind: (by: string): string => `${by} behind the hub`,
    calledItself: "Calls itself",
    of: (used: string, total: string): string => `${used} of ${total}`,
  },

  device: {
    gpu: "GPU",
    state: "State",
    utilization: "Utilisation",
    memory: "Memory",
    temperature: "Temp.",
    power: "Power",
    since: (age: string): string => `for ${age}`,
    sinceTitle: (when: string): string => `Since ${when}`,
    slice: "slice",
    partitioned: "split into slices",
    hostMemory: "shared with the host",
    label: (label: string, name: string): string => `GPU ${label}, ${name}`,
    bar: {
      utilization: (label: string): string => `Utilisation of GPU ${label}`,
      memory: (label: string): string => `Memory of GPU ${label}`,
    },
    unknownBar: "unknown",
    throttled: "throttled",
    ecc: (count: number): string => plural(count, "uncorrected ECC error", "uncorrected ECC errors"),
    tile: (label: string, state: string): string => `GPU ${label}: ${state}`,
  },

  throttle: {
    8: "hardware slowdown",
    32: "thermal",
    64: "hardware thermal",
    128: "power brake",
  } as Record<number, string>,

  process: {
    tableOf: (label: string): string => `Processes on GPU ${label}`,
    user: "User",
    pid: "PID",
    memory: "GPU memory",
    sm: "SM",
    cpu: "CPU",
    ram: "RAM",
    running: "Running",
    command: "Command",
    cores: (value: string): string => `${value} cores`,
    graphics: "graphics",
    gone: "gone, memory still held",
    container: (name: string): string => `container ${name}`,
    job: (name: string): string => `job ${name}`,
    unknownCommand: "command unknown",
    commandTitle: "Command line, secrets removed on the node",
  },

  problem: {
    heading: "Problems",
    since: (age: string): string => `for ${age}`,
    noDevices: "No GPU on this node",
    neverHint: "This node has joined but never sent a report. Is its agent running?",
    noDevicesHint: "To see gpuherd with simulated cards, run",
  },
} as const;
