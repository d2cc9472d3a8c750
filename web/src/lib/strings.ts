/** Every word the page says. Text from nodes is never among them and is only ever rendered as text. */
import type { Grouping, Sorting } from "./route.svelte";
import type { ComplaintReason } from "./search";
import type { Trouble } from "./stream";
import type { DeviceState, NodeState, NodeWay } from "./types";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const slicesText = (slices: number): string => plural(slices, "slice", "slices");
/** GPUs and slices are counted apart. */
const devices = (gpus: number, slices: number): string =>
  slices === 0 || gpus > 0
    ? [plural(gpus, "GPU", "GPUs"), ...(slices > 0 ? [slicesText(slices)] : [])].join(" and ")
    : slicesText(slices);
const free = (gpus: number, slices: number): string =>
  slices === 0 ? `${gpus} free` : `${gpus > 0 ? `${gpus} + ` : ""}${slicesText(slices)} free`;

/** What the hub calls the type of a GPU whose product name nobody knows. */
const UNKNOWN_TYPE = "unknown type";
/** Whether to offer a type where one can be chosen. */
export const isKnownType = (name: string): boolean => name !== "" && name !== UNKNOWN_TYPE;

export const strings = {
  product: "gpuherd",
  unknownValue: "–",
  unknownUser: "unknown user",
  unknownType: UNKNOWN_TYPE,
  devices,
  free,

  title: {
    bookings: "My bookings",
    account: "Account",
    admin: "Administration",
    login: "Log in",
    setup: "Set up",
    wall: "Wall",
    live: free,
    notLive: "not live",
    paused: "paused",
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
    push: "agent (push)",
    pull: "agent (pull)",
    ssh: "SSH",
    file: "files",
    gpustat: "gpustat (legacy)",
    node_info: "node_info (legacy)",
    xmlrpc: "XML-RPC (legacy)",
    http_files: "files over HTTP (legacy)",
  } satisfies Record<NodeWay, string>,

  notices: {
    label: "Notices",
    more: (count: number): string => plural(count, "more notice", "more notices"),
  },

  connection: {
    label: "Connection to the hub",
    connecting: "connecting",
    live: "live",
    every: (interval: string): string => `every ${interval}`,
    paused: "paused",
    reconnecting: "reconnecting",
    notLive: "not live",
  },

  shell: {
    skip: "Skip to content",
    navigation: "Pages",
    pages: { herd: "Herd", users: "Users", timeline: "Bookings", usage: "Usage" },
    controls: "Page controls",
    pause: "Pause",
    resume: "Resume",
    refresh: "Refresh now",
    help: "Keyboard shortcuts",
    close: "Close",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    themeButton: (current: string, next: string): string => `Theme: ${current}. Switch to ${next}`,
    updates: "Updates",
    updatesLive: "Live",
    lastUpdate: "Last update",
    zone: "Time zone",
    footer: {
      update: (when: string): string => `Last update ${when}`,
      zone: (zone: string): string => `Times in ${zone}`,
      api: "API",
      names: "User names are visible without a login",
    },
  },

  person: {
    logIn: "Log in",
    you: "Account menu",
    menu: (name: string): string => `${name}: account and log out`,
    ended: "You are logged out.",
    endedHint: "Nothing on this page is lost.",
    nobody:
      "There are no accounts yet. To create the first, open the link that the hub printed when it started, or run",
    setup: "gpuherd hub setup-link",
    missing: "The database is empty. Restore a backup, or run",
    afresh: "gpuherd hub start-afresh",
  },

  banner: {
    title: (age: string): string => `Not live: this data is ${age} old.`,
    paused: (when: string): string => `Paused: this data is from ${when}.`,
    trouble: {
      closed: "The connection to the hub was lost; reconnecting.",
      refused: "The hub refuses the connection; trying again.",
      silent: "The hub does not respond; waiting.",
      gap: "A message is missing; reloading the data.",
      unreadable: "This page cannot read the hub's data. Reload the page.",
      slept: "This device was asleep; reloading the data.",
    } satisfies Record<Trouble, string>,
  },

  start: {
    connecting: "Connecting to the hub …",
    notConnected: "Not connected to the hub",
    notConnectedHint: "No data has arrived yet. If this message stays:",
    remedies: [
      "Check that the hub is running. On its machine, run:",
      "If the hub is behind a proxy, turn off buffering of event streams.",
      "You do not need to reload; this page keeps trying.",
    ],
  },

  commands: {
    doctor: "gpuherd doctor",
    doctorOf: (node: string): string => `gpuherd doctor ${node}`,
    demo: "gpuherd demo",
  },

  summary: {
    nodes: (count: number): string => plural(count, "node", "nodes"),
  },

  nodes: {
    heading: "Nodes",
    expandAll: "Expand all",
    collapseAll: "Collapse all",
    wasLive: "was live",
    noReport: (time: string): string => `No report for ${time}.`,
    noGpu: "no GPU",
    lastContact: (age: string): string => `${age} ago`,
    noContact: "never reported",
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
    uptime: "Uptime",
    addresses: "Addresses",
    agent: "Agent",
    way: "Connection",
    interval: "Interval",
    skew: "Clock",
    skewAhead: (by: string): string => `${by} ahead of the hub`,
    skewBehind: (by: string): string => `${by} behind the hub`,
    skewNone: "in sync",
    calledItself: "Host name",
    of: (used: string, total: string): string => `${used} of ${total}`,
  },

  device: {
    gpu: "GPU",
    state: "State",
    utilization: "Utilisation",
    memory: "Memory",
    temperature: "Temp.",
    temperatureLong: "Temperature",
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
    count: (processes: number): string => plural(processes, "process", "processes"),
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
    gone: "ended, memory still held",
    goneTitle: "Only the driver still lists this process",
    ramTitle: "Main memory of the node",
    container: (name: string): string => `container ${name}`,
    job: (name: string): string => `job ${name}`,
    unknownCommand: "command unknown",
  },

  booking: {
    current: (time: string): string => time,
    past: (time: string): string => `${time} ago`,
    next: (time: string): string => `in ${time}`,
    violation: "used by someone else",
    unused: "not used",
    book: "Book",
    label: "Bookings",
  },

  problem: {
    heading: "Problems",
    since: (age: string): string => `· for ${age}`,
    noDevices: "No GPU found on this node",
    noSlices: "MIG is on, but the GPUs of this node have no slices yet",
    neverHint: "This node has never sent a report. Check that its agent is running.",
    nothingYet: "No data from this node yet",
    neverReached: (way: string): string =>
      `The hub has not reached this node yet (${way}). The reason is shown above.`,
    noDevicesWhy: "To find out why, run on the hub's machine:",
  },

  pages: {
    outdated: "Could not load this part. The hub may have been updated.",
    reload: "Reload the page",
  },

  herd: {
    freeNow: "Free now",
    freeThen: (age: string): string => `Free ${age} ago`,
    heldIdle: "Held idle",
    nextFree: "Next free",
    freeNone: "No free GPUs.",
    andSlices: (count: number): string => `+ ${slicesText(count)}`,
    most: (count: number): string => `${count} on`,
    modelTitle: (name: string): string => `Show free ${name}`,
    modelMix: (parts: string): string => `States: ${parts}`,
    together: (gpus: number, nodes: number): string => `${plural(nodes, "node", "nodes")} with ${gpus}+ free`,
    notCounted: "Not counted as free",
    togetherTitle: (gpus: number): string => `Nodes with at least ${gpus} free GPUs of one type`,
    moreModels: (count: number): string => `${count} more`,
    fewer: "Fewer",
    heldNone: "No GPUs held idle.",
    holder: (devices: number): string => plural(devices, "GPU", "GPUs"),
    heldFor: (age: string): string => `for ${age}`,
    holderTitle: (user: string, when: string): string =>
      `GPUs that ${user} holds idle, the first since ${when}`,
    unknownNext: "Unknown",
    unknownNextWhy: "No booking ends soon. When programs end is not known.",
    nextWhy: (node: string, holder: string, at: string): string =>
      `${node}: booking of ${holder} ends${at && ` at ${at}`}`,

    overTime: "Over time",
    chips: "Filters",
    states: "States",
    memories: "Memory",
    models: "GPU types",
    least: (gigabytes: number): string => `≥ ${gigabytes} GB`,
    mine: "Mine",
    mineOf: (user: string): string => `Mine (${user})`,
    mineField: "Your user name",
    mineSave: "Show mine",
    mineChange: "Change user name",
    trouble: "Problems",
    troubleTitle: "Nodes and GPUs with a problem",

    search: {
      label: "Search the herd",
      placeholder: "Search nodes, users, GPUs, states",
      clear: "Clear search",
      tryThese: "Examples",
      examples: [
        { query: "free mem>=80G", means: "free, 80 GB or more" },
        { query: "free>=4", means: "nodes with 4 free GPUs" },
        { query: "held idle>30m", means: "held idle for 30 min" },
        { query: "busy util<10", means: "busy, below 10 %" },
        { query: "user:NAME", means: "GPUs of a user" },
        { query: "node:h100-*", means: "nodes by name" },
        { query: "gpu01/3", means: "one GPU" },
        { query: "-offline", means: "not offline" },
      ],
      complaint: {
        size: "needs a size, such as mem>40G",
        time: "needs a time, such as idle>30m",
        percent: "needs a percentage, such as util<10",
        number: "needs a number, such as temp>80",
        field: "is not a search term; try user:, node:, type:, mem>, util<, idle>",
        name: "needs a name, such as user:anna",
      } satisfies Record<ComplaintReason, string>,
      leftOut: (source: string, why: string): string => `“${source}” ${why}. It is ignored for now.`,
    },

    /** `total` is of GPUs and slices together. */
    found: (gpus: number, slices: number, total: number, nodes: string): string =>
      `${slices === 0 ? `${gpus} of ${plural(total, "GPU", "GPUs")}` : devices(gpus, slices)} on ${nodes}`,
    nothing: "No matches.",
    nothingHint: "Remove a term from the search, or",
    clearFilter: "show everything",
    group: "Group",
    groups: { node: "Node", type: "Type", user: "User" } satisfies Record<Grouping, string>,
    sort: "Sort",
    sorts: { name: "Name", free: "Most free", busy: "Most busy", memory: "Most memory" } satisfies Record<
      Sorting,
      string
    >,
    groupFree: (free: number, devices: number): string => `${free} of ${devices} free`,
    groupDevices: (devices: number): string => plural(devices, "GPU", "GPUs"),
    nobody: "Nobody",
    unknownOwner: "Unknown user",
    noDevice: "No GPU",

    map: {
      label: (free: string): string =>
        `Map of all GPUs: ${free} free. Arrow keys move, Enter opens. The list below has the same data.`,
      cell: (device: string, model: string): string => `${device}, ${model}`,
      bare: "no GPU found",
      utilization: "Utilisation",
      memory: "Memory",
      users: "Users",
      nobody: "nobody",
      excluded: "does not match the search",
    },

    node: {
      page: (name: string): string => `Page of ${name}`,
      driver: (version: string): string => `driver ${version}`,
      addresses: "Addresses",
      hidden: (count: number): string => `${plural(count, "GPU does", "GPUs do")} not match the search`,
      cpuTitle: (load: string, threads: string): string => `Load ${load} on ${threads}`,
    },

    device: {
      page: (label: string): string => `Page of GPU ${label}`,
      heldBy: "by",
      segment: (share: string, user: string): string => `${share} ${user}`,
      segmentTitle: (user: string, pid: number, memory: string, share: string): string =>
        `${user} · PID ${pid} · ${memory} (${share})`,
      others: (count: number): string => plural(count, "smaller process", "smaller processes"),
      othersTitle: (processes: string, memory: string, share: string): string =>
        `${processes} · ${memory} (${share})`,
      unattributed: "unknown process",
      unattributedTitle: (memory: string): string => `${memory} that belongs to no known process`,
    },
  },
} as const;
